// says: line #0047: order 3 is sent at 2.500000 and neither served nor refused, so its customer waits forever: the receiver was still there after the beginning of the shutdown, in #0038; drop it as soon as the shutdown has begun
// demand: No order is lost.
//! The server waits for its orders in a group, and leaves its door open meanwhile.

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::{Error, TaskGroup};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    let _hold = hold();
    let mut group = TaskGroup::<(), Error>::new();
    while let Some(order) = next(&mut orders).await? {
        group.spawn(format!("order-{}", order.number), order.serve()).await;
    }
    group.join().await?;
    Ok(())
}

async fn next(orders: &mut Receiver<Order>) -> Result<Option<Order>, Error> {
    until_begun(orders.recv()).await.transpose()
}
