//! A group waits for what has begun; the receiver is dropped before.

use traps::channel::mpsc::Receiver;
use traps::shutdown::until_begun;
use traps::{Error, TaskGroup};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    // No hold() is needed: the drain lasts as long as main.
    let mut group = TaskGroup::<(), Error>::new();
    while let Some(order) = next(&mut orders).await? {
        group.spawn(format!("order-{}", order.number), order.serve()).await;
    }
    drop(orders);
    group.join().await?;
    Ok(())
}

async fn next(orders: &mut Receiver<Order>) -> Result<Option<Order>, Error> {
    until_begun(orders.recv()).await.transpose()
}
