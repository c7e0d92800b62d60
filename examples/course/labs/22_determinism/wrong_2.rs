// says: still missing: the same log in each run; line #0008 is the first that differs, where task 2 `main` spawns its tasks in another order; a sort leaves those whose keys are equal in the order in which they came
// demand: The same log in all 32 runs.
//! Sorted by a key that is the same for many: among these the hash decides.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use traps::{Error, note, sleep, spawn};

use super::given::{MS, Orders};

/// Serves all customers side by side. Then notes the number of sales of each fruit.
pub async fn shop(orders: Orders) -> Result<(), Error> {
    let mut orders: Vec<_> = orders.into_iter().collect::<HashMap<_, _>>().into_iter().collect();
    orders.sort_by_key(|(name, _)| name.len());
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
