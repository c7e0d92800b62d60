// says: line #0051: order 3 begins at 2.500000, and the shutdown has begun at 2.000000, in #0038; the beginning of the shutdown must end the wait for the next order
// demand: None begins later.
//! Each order is held, and the server takes orders on as if nothing had happened.

use traps::channel::mpsc::Receiver;
use traps::shutdown::hold;
use traps::{Error, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    loop {
        let order = orders.recv().await?;
        let hold = hold();
        let number = order.number;
        let held = async move {
            let served = order.serve().await;
            drop(hold);
            served
        };
        spawn(format!("order-{number}"), held).detached().await;
    }
}
