// says: line #0047: order 1, begun in #0022, is cancelled by the kernel: what was held was dropped before the order was done, and then the drain was over; the hold belongs in the task of the order
// demand: What has begun is done.
//! The server has a hold, and returns; its orders have none.

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::{Error, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    let _hold = hold();
    while let Some(order) = next(&mut orders).await? {
        spawn(format!("order-{}", order.number), order.serve()).detached().await;
    }
    Ok(())
}

async fn next(orders: &mut Receiver<Order>) -> Result<Option<Order>, Error> {
    until_begun(orders.recv()).await.transpose()
}
