// says: line #0047: order 1, begun in #0022, is cancelled by the kernel: nothing was held, so the drain was over at once; a task that is to be finished has a `hold`
// demand: What has begun is done.
//! Returns as soon as it is told to end. What it has begun is cancelled.

use traps::channel::mpsc::Receiver;
use traps::shutdown::until_begun;
use traps::{Error, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    while let Some(order) = next(&mut orders).await? {
        spawn(format!("order-{}", order.number), order.serve()).detached().await;
    }
    Ok(())
}

async fn next(orders: &mut Receiver<Order>) -> Result<Option<Order>, Error> {
    until_begun(orders.recv()).await.transpose()
}
