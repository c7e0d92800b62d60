// says: the runs agree, but the log has a note `sold figs 1`; each fruit is noted once, with the number of all its sales
// demand: Each fruit once.
//! A note for each sale, and so several for a fruit.

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
        for sale in 1..=*count {
            note(format!("sold {fruit} {sale}"));
        }
    }
    Ok(())
}
