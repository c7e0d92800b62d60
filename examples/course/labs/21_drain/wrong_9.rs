// says: line #0100: at 12.000000 the drain has reached its limit, though every order was done before: `serve` has not returned, and the drain lasts as long as main; a server that takes no more orders has nothing to wait for
// demand: The drain ends by itself.
//! Refuses what comes, and waits on for nothing.

use std::time::Duration;

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::{Error, sleep, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    loop {
        let Some(Ok(order)) = until_begun(orders.recv()).await else {
            orders.close();
            sleep(Duration::from_secs(1)).await?;
            continue;
        };
        let hold = hold();
        let number = order.number;
        let held = async move {
            let _hold = hold;
            order.serve().await
        };
        spawn(format!("order-{number}"), held).detached().await;
    }
}
