// says: line #0044: order 3 is sent at 2.500000 and neither served nor refused, so its customer waits forever: the receiver was still there after the beginning of the shutdown, in #0038; drop it as soon as the shutdown has begun
// demand: No order is lost.
//! Orders that come in the drain are received, and thrown away.

use traps::channel::mpsc::Receiver;
use traps::shutdown::{has_begun, hold};
use traps::{Error, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    loop {
        let order = orders.recv().await?;
        if has_begun() {
            return Ok(());
        }
        let hold = hold();
        let number = order.number;
        let held = async move {
            let _hold = hold;
            order.serve().await
        };
        spawn(format!("order-{number}"), held).detached().await;
    }
}
