//! A helper function that is held from its first line.

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::{Error, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    loop {
        // A sleep would see the shutdown late.
        match until_begun(orders.recv()).await {
            Some(order) => {
                let order = order?;
                spawn(format!("order-{}", order.number), held(order)).detached().await;
            }
            None => return Ok(()),
        }
    }
}

async fn held(order: Order) -> Result<(), Error> {
    let _hold = hold();
    order.serve().await
}
