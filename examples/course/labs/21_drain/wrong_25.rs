// says: line #0060: the task of order 1, begun in #0028, ends and the order is not done: its work was given up when the shutdown began, in #0050; only the wait for the next order ends then
// demand: What has begun is done.
//! Each task waits a moment for the kitchen, and ends when the shutdown begins.

use std::time::Duration;

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::sync::Event;
use traps::{Error, ignore_after, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    while let Some(order) = until_begun(orders.recv()).await.transpose()? {
        let hold = hold();
        let number = order.number;
        let held = async move {
            let _hold = hold;
            ignore_after(Duration::from_millis(1), Event::new().wait()).await?;
            until_begun(order.serve()).await.transpose()
        };
        spawn(format!("order-{number}"), held).detached().await;
    }
    Ok(())
}
