// says: line #0674: `serve` returns the error `cancelled: shutdown`; the beginning of the shutdown, in #0656, must end the wait for the next order
// demand: The drain ends by itself.
//! A task of its own looks whether the shutdown has begun, and says so to the server.

use std::rc::Rc;
use std::time::Duration;

use traps::channel::mpsc::Receiver;
use traps::shutdown::{has_begun, hold};
use traps::sync::Event;
use traps::{Either, Error, race, sleep, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    let over = Rc::new(Event::new());
    let theirs = Rc::clone(&over);
    let watch = async move {
        while !has_begun() {
            sleep(Duration::from_millis(10)).await?;
        }
        theirs.set();
        Ok::<_, Error>(())
    };
    spawn("watch", watch).detached().await;
    loop {
        let order = match race(orders.recv(), over.wait()).await {
            Either::Left(order) => order?,
            Either::Right(_) => return Ok(()),
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
