// says: the runs agree, but the log has no task `carla`: the customers are to be served side by side, each by a task of that name
// demand: A task for each customer.
//! The shop of the page, whatever was ordered.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use traps::{Error, note, sleep, spawn};

use super::given::{MS, Orders};

/// Serves all customers side by side. Then notes the number of sales of each fruit.
pub async fn shop(_orders: Orders) -> Result<(), Error> {
    let orders = BTreeMap::from([
        ("al", "plums"),
        ("bob", "figs"),
        ("eve", "pears"),
        ("kim", "figs"),
        ("lisa", "plums"),
        ("maria", "quinces"),
        ("oscar", "figs"),
        ("sophie", "cherries"),
    ]);
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
