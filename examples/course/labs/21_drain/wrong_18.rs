// says: line #0025: order 1 begins at 1.600000, and the shutdown has begun at 1.599999, in #0012; the beginning of the shutdown must end the wait for the next order
// demand: None begins later.
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
