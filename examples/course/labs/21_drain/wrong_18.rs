// says: line #0023: `serve` returns the error `cancelled: shutdown`; the beginning of the shutdown, in #0012, must end the wait for the next order
// demand: The drain ends by itself.
//! The server waits for its first order, whenever that comes, and then begins to look.

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::{Error, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    let mut next = Some(orders.recv().await?);
    while let Some(order) = next {
        let hold = hold();
        let number = order.number;
        let held = async move {
            let _hold = hold;
            order.serve().await
        };
        spawn(format!("order-{number}"), held).detached().await;
        next = until_begun(orders.recv()).await.transpose()?;
    }
    Ok(())
}
