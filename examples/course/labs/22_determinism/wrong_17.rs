// says: line #1030: the task `bob` ends before all customers have their tasks; they are to be served side by side, so spawn all tasks before you join the first
// demand: Side by side.
//! The customers are served in batches of 250.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use traps::{Error, note, sleep, spawn};

use super::given::{MS, Orders};

pub async fn shop(orders: Orders) -> Result<(), Error> {
    let orders: BTreeMap<_, _> = orders.into_iter().collect();
    let orders: Vec<_> = orders.into_iter().collect();
    let sold = Rc::new(RefCell::new(BTreeMap::new()));
    for batch in orders.chunks(250) {
        let mut customers = Vec::new();
        for (name, fruit) in batch.iter().cloned() {
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
    }
    for (fruit, count) in sold.borrow().iter() {
        note(format!("sold {fruit} {count}"));
    }
    Ok(())
}
