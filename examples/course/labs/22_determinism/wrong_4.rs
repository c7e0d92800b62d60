// says: the runs agree, but the customers are spawned in another order than that of their names: `bob` where `al` is next; an order that a hash or a list decides changes with the hash or the list
// demand: In the order of the names.
//! A hash that is the same in each run is still an order that nobody can predict.

use std::cell::RefCell;
use std::collections::HashMap;
use std::hash::{BuildHasherDefault, DefaultHasher};
use std::rc::Rc;

use traps::{Error, note, sleep, spawn};

use super::given::{MS, Orders};

type Fixed<K, V> = HashMap<K, V, BuildHasherDefault<DefaultHasher>>;

/// Serves all customers side by side. Then notes the number of sales of each fruit.
pub async fn shop(orders: Orders) -> Result<(), Error> {
    let orders: Fixed<_, _> = orders.into_iter().collect();
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
