// says: line #0070: the runs agree, but the task `maria` ends here before it has served its customer, because your task 2 has cancelled it in #0066; join each task, and cancel none
// demand: Side by side.
//! A sale counts when the fruit is ordered. When the first customer is served, the shop sends the
//! others away.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use traps::{Error, note, sleep, spawn};

use super::given::{MS, Orders};

pub async fn shop(orders: Orders) -> Result<(), Error> {
    let orders: BTreeMap<_, _> = orders.into_iter().collect();
    let sold = Rc::new(RefCell::new(BTreeMap::new()));
    let mut customers = Vec::new();
    for (name, fruit) in orders {
        let sold = sold.clone();
        let serve = async move {
            *sold.borrow_mut().entry(fruit).or_insert(0) += 1;
            sleep(MS * fruit.len() as u32).await?;
            Ok::<_, Error>(())
        };
        customers.push(spawn(name, serve).await);
    }
    customers[0].join().await??;
    for customer in &mut customers[1..] {
        customer.cancel().await?;
    }
    for (fruit, count) in sold.borrow().iter() {
        note(format!("sold {fruit} {count}"));
    }
    Ok(())
}
