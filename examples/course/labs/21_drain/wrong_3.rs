// says: line #0047: order 1, begun in #0022, is cancelled by the kernel: no hold was there when the drain began (`holds=0`), so it was over at once; a hold in a variable is dropped at the end of its block, and `let _ = hold();` drops it in that statement; move it into the task of the order
// demand: What has begun is done.
//! A hold in `_` is dropped in the same statement.

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::{Error, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    while let Some(order) = next(&mut orders).await? {
        let number = order.number;
        let held = async move {
            let _ = hold();
            order.serve().await
        };
        spawn(format!("order-{number}"), held).detached().await;
    }
    Ok(())
}

async fn next(orders: &mut Receiver<Order>) -> Result<Option<Order>, Error> {
    until_begun(orders.recv()).await.transpose()
}
