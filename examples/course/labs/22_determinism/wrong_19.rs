// says: line #0065: the runs agree, but the task `al` ends here before it has served its customer, at 0.001000: its sleep of 5ms, begun in #0025, is to last until 0.005000
// demand: Side by side.
//! No customer is served for longer than a millisecond.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use traps::{Error, note, sleep, spawn, timeout_after};

use super::given::{MS, Orders};

pub async fn shop(orders: Orders) -> Result<(), Error> {
    let orders: BTreeMap<_, _> = orders.into_iter().collect();
    let sold = Rc::new(RefCell::new(BTreeMap::new()));
    let mut customers = Vec::new();
    for (name, fruit) in orders {
        let sold = sold.clone();
        let serve = async move {
            _ = timeout_after(MS, sleep(MS * fruit.len() as u32)).await;
            *sold.borrow_mut().entry(fruit).or_insert(0) += 1;
            Ok::<_, Error>(())
        };
        customers.push(spawn(name, serve).await);
    }
    for customer in &mut customers {
        customer.join().await??;
    }
    for (fruit, count) in sold.borrow().iter() {
        note(format!("sold {fruit} {count}"));
    }
    Ok(())
}
