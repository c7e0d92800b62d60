// says: line #0057: order 2, sent at 1.500000 in #0023, begins only at 6.500000, because its task `main` was busy with order 1; each order is served in a task of its own
// demand: None begins later.
//! One order at a time: those that wait are taken after the shutdown has begun.

use traps::Error;
use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    let _hold = hold();
    while let Some(order) = next(&mut orders).await? {
        order.serve().await?;
    }
    Ok(())
}

async fn next(orders: &mut Receiver<Order>) -> Result<Option<Order>, Error> {
    until_begun(orders.recv()).await.transpose()
}
