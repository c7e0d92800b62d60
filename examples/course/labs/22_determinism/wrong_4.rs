// says: the runs agree, but the customers are spawned in an order that is not that of the names; an order that a hash decides is nobody's promise, even if the hash is the same in each run
//! A hash that is the same in each run is still an order that nobody can predict.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::rc::Rc;

use traps::{Error, note, sleep, spawn};

use super::given::{MS, ORDERS};

type Fixed<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// Serves all customers side by side, then notes how much of each fruit was sold.
pub async fn shop() -> Result<(), Error> {
    let orders: Fixed<_, _> = ORDERS.into_iter().collect();
    let sold = Rc::new(RefCell::new(Fixed::default()));
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
