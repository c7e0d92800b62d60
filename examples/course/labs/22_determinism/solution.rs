//! A shop: a task for each customer, and a list of what was sold.
//! Its log is the same in each run.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use traps::{Error, note, sleep, spawn};

use super::given::{MS, Orders};

/// Serves all customers side by side. Then notes the number of sales of each fruit.
pub async fn shop(orders: Orders) -> Result<(), Error> {
    let orders: BTreeMap<_, _> = orders.into_iter().collect();
    let sold = Rc::new(RefCell::new(BTreeMap::new()));
    let mut customers = Vec::new();
    for (name, fruit) in orders {
        let sold = sold.clone();
        let serve = async move {
            sleep(MS * fruit.len() as u32).await?;
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
