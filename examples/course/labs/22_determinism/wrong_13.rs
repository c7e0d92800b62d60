// says: still missing: the same log in each run; line #7336 is the first that differs, where task 2 `main` makes its notes in another order; a sort leaves those whose keys are equal in the order in which they came
// demand: In the order of the names.
//! A sort by the first two letters of a fruit.

use std::cell::RefCell;
use std::collections::{BTreeMap, HashMap};
use std::rc::Rc;

use traps::{Error, note, sleep, spawn};

use super::given::{MS, Orders};

pub async fn shop(orders: Orders) -> Result<(), Error> {
    let orders: BTreeMap<_, _> = orders.into_iter().collect();
    let sold = Rc::new(RefCell::new(HashMap::new()));
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
    let mut list: Vec<_> = sold.take().into_iter().collect();
    // by the first two letters
    list.sort_by_key(|(fruit, _)| [fruit.as_bytes()[0], fruit.as_bytes()[1]]);
    for (fruit, count) in list {
        note(format!("sold {fruit} {count}"));
    }
    Ok(())
}
