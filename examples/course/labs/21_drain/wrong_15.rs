// says: line #4109: order 12, sent at 0.648000 in #0155, begins only at 4.548000, in the drain; an order is begun as soon as it has come
// demand: None begins later.
//! A server with eight places: an order waits until one of them is free.

use std::rc::Rc;

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::sync::Semaphore;
use traps::{Error, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    let places = Rc::new(Semaphore::new(8));
    while let Some(order) = until_begun(orders.recv()).await.transpose()? {
        let (hold, places, number) = (hold(), Rc::clone(&places), order.number);
        let held = async move {
            let _place = places.acquire().await?;
            let _hold = hold;
            order.serve().await
        };
        spawn(format!("order-{number}"), held).detached().await;
    }
    Ok(())
}
