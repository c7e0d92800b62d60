//! A server that ends without losing an order.

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::{Error, spawn};

use super::given::Order;

/// Takes orders until the shutdown begins, and serves each in a task of its own.
pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    while let Some(order) = next(&mut orders).await? {
        // Taken before the task runs: the shutdown may begin in between.
        let hold = hold();
        let number = order.number;
        let held = async move {
            let served = order.serve().await;
            drop(hold);
            served
        };
        spawn(format!("order-{number}"), held).detached().await;
    }
    // The receiver is dropped here, so whoever sends from now on is refused.
    Ok(())
}

/// The next order; `None` when no more is to be taken.
async fn next(orders: &mut Receiver<Order>) -> Result<Option<Order>, Error> {
    until_begun(orders.recv()).await.transpose()
}
