// says: line #1333: order 102 is sent at 1.548000 and neither served nor refused, so its customer waits forever: no task had begun it when the shutdown began, in #3428; begin each order as soon as it comes
// demand: No order is lost.
//! A server with a hundred places. An order that finds none is dropped, as if it had been refused.

use std::rc::Rc;

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::{Error, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    let place = Rc::new(());
    while let Some(order) = until_begun(orders.recv()).await.transpose()? {
        if Rc::strong_count(&place) > 100 {
            continue;
        }
        let (hold, place) = (hold(), Rc::clone(&place));
        let name = format!("order-{}", order.number);
        spawn(name, async move { (order.serve().await, drop((hold, place))).0 }).detached().await;
    }
    Ok(())
}
