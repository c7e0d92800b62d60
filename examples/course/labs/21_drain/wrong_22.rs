// says: line #0040: order 3 is sent at 0.558000 and neither served nor refused, so its customer waits forever: no task had begun it when the shutdown began, in #0147; begin each order as soon as it comes
// demand: No order is lost.
//! A server that takes two orders, as on the page, and then waits for the shutdown.

use traps::channel::mpsc::Receiver;
use traps::shutdown::{begun, hold};
use traps::{Error, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    for _ in 0..2 {
        let Ok(order) = orders.recv().await else { break };
        let hold = hold();
        let name = format!("order-{}", order.number);
        spawn(name, async move { (order.serve().await, drop(hold)).0 }).detached().await;
    }
    begun().await?;
    Ok(())
}
