//! The server is a task, which main races with the beginning of the shutdown.

use traps::channel::mpsc::Receiver;
use traps::shutdown::{begun, hold};
use traps::{Either, Error, race, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    match race(take(&mut orders), begun()).await {
        Either::Left(ended) => ended,
        Either::Right(begun) => Ok(begun?),
    }
}

/// Takes orders as long as it lives.
async fn take(orders: &mut Receiver<Order>) -> Result<(), Error> {
    loop {
        let order = orders.recv().await?;
        let (hold, name) = (hold(), format!("order-{}", order.number));
        let held = async move { (order.serve().await, drop(hold)).0 };
        spawn(name, held).detached().await;
    }
}
