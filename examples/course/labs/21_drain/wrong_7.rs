// says: line #0048: the task of order 1, begun in #0022, ends and the order is not done: its work was given up when the shutdown began, in #0038; only the wait for the next order ends then
// demand: What has begun is done.
//! Every wait ends when the shutdown begins, that of an order in work, too.

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::{Error, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    while let Some(order) = next(&mut orders).await? {
        let number = order.number;
        let hold = hold();
        let held = async move {
            let _hold = hold;
            until_begun(order.serve()).await
        };
        spawn(format!("order-{number}"), held).detached().await;
    }
    Ok(())
}

async fn next(orders: &mut Receiver<Order>) -> Result<Option<Order>, Error> {
    until_begun(orders.recv()).await.transpose()
}
