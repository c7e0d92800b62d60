// says: line #0008: the server waits for a time (`set_timeout`), so it sees the shutdown late, and an order that comes in between is lost; the beginning of the shutdown itself is to end the wait
// demand: No clock.
//! The server looks ten times a second whether the shutdown has begun.

use std::time::Duration;

use traps::channel::mpsc::Receiver;
use traps::shutdown::{has_begun, hold};
use traps::{Error, ignore_after, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    while !has_begun() {
        let recv = async { orders.recv().await };
        let Some(order) = ignore_after(Duration::from_millis(100), recv).await? else { continue };
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
