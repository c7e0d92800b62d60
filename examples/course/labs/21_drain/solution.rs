//! A server that ends without losing an order.

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::{Error, spawn};

use super::given::Order;

/// Takes orders until the shutdown begins, and serves each order in a new task.
pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    while let Some(order) = next(&mut orders).await? {
        // Take the hold before the task runs, because the shutdown may begin before that.
        let hold = hold();
        let number = order.number;
        let held = async move {
            let served = order.serve().await;
            drop(hold);
            served
        };
        spawn(format!("order-{number}"), held).detached().await;
    }
    // The receiver is dropped here, so every later send is refused.
    Ok(())
}

/// Takes the next order. Returns `None` if the server must take no more orders.
async fn next(orders: &mut Receiver<Order>) -> Result<Option<Order>, Error> {
    until_begun(orders.recv()).await.transpose()
}
