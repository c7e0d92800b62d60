// says: still missing: the same log in each run; line #0014 is the first that differs, where task 2 `main` spawns its tasks in another order; a sort leaves those whose keys are equal in the order in which they came
// demand: The same log in all 32 runs.
//! A sort by the first three letters of a name.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use traps::{Error, note, sleep, spawn};

use super::given::{MS, Orders};

/// The first three letters, by which the shop sorts its cards.
fn card(name: &str) -> String {
    name.chars().take(3).collect()
}

pub async fn shop(orders: Orders) -> Result<(), Error> {
    let orders: HashMap<_, _> = orders.into_iter().collect();
    let mut orders: Vec<_> = orders.into_iter().collect();
    orders.sort_by_key(|(name, _)| card(name));
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
