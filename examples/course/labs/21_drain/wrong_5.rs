// says: line #0079: at 12.000000 the drain has reached its limit, though every order was done before: a hold was not dropped; left were `reports`
// demand: The drain ends by itself.
//! A task that never ends has a hold, too.

use std::time::Duration;

use traps::channel::mpsc::Receiver;
use traps::shutdown::{hold, until_begun};
use traps::{Error, note, sleep, spawn};

use super::given::Order;

pub async fn serve(mut orders: Receiver<Order>) -> Result<(), Error> {
    let reports = async {
        let _hold = hold();
        while sleep(Duration::from_secs(4)).await.is_ok() {
            note("open for business");
        }
    };
    spawn("reports", reports).detached().await;
    while let Some(order) = next(&mut orders).await? {
        let hold = hold();
        let number = order.number;
        let held = async move {
            let _hold = hold;
            order.serve().await
        };
        spawn(format!("order-{number}"), held).detached().await;
    }
    Ok(())
}

async fn next(orders: &mut Receiver<Order>) -> Result<Option<Order>, Error> {
    until_begun(orders.recv()).await.transpose()
}
