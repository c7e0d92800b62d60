// says: line #4360: order 122, sent at 1.748000 in #1591, begins only at 3.918000, in the drain; an order is begun as soon as it has come
// demand: None begins later.
//! A limit of the orders in work.

use std::rc::Rc;

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::sync::Semaphore;
use traps::{Error, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    // At most 100 orders are in work.
    let places = Rc::new(Semaphore::new(100));
    while let Some(order) = until_begun(orders.recv()).await.transpose()? {
        let hold = hold();
        let places = places.clone();
        let name = format!("order-{}", order.number);
        let serve = async move {
            let _hold = hold;
            let _place = places.acquire().await?;
            order.serve().await
        };
        spawn(name, serve).detached().await;
    }
    Ok(())
}
