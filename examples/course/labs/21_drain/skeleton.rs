//! A server that ends without losing an order.

use traps::channel::mpsc::Receiver;
use traps::{Error, spawn};

use super::given::Order;

/// Takes orders until the shutdown begins, and serves each order in a new task.
pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    while let Some(order) = next(&mut orders).await? {
        spawn(format!("order-{}", order.number), order.serve()).detached().await;
    }
    Ok(())
}

/// Takes the next order. Returns `None` if the server must take no more orders.
async fn next(orders: &mut Receiver<Order>) -> Result<Option<Order>, Error> {
    let _order = orders.recv();
    todo!("the wait for the next order, which the beginning of the shutdown ends")
}
