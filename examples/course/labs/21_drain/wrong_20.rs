// says: line #0042: nothing is held when the drain begins (`holds=0`), so it is over at once, and all remaining tasks are cancelled; a task that is to be finished has a `hold`, and a shield is none
// demand: No order is lost.
//! A shield in place of a hold.

use traps::channel::mpsc::Receiver;
use traps::shutdown::until_begun;
use traps::{Error, shield, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    while let Some(order) = next(&mut orders).await? {
        spawn(format!("order-{}", order.number), shield(order.serve())).detached().await;
    }
    Ok(())
}

async fn next(orders: &mut Receiver<Order>) -> Result<Option<Order>, Error> {
    until_begun(orders.recv()).await.transpose()
}
