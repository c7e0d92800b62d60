//! A group of tasks that return what they have sold.

use std::collections::BTreeMap;

use traps::{Error, note, sleep, spawn};

use super::given::{MS, Orders};

pub async fn shop(mut orders: Orders) -> Result<(), Error> {
    orders.sort_by(|one, two| one.0.cmp(two.0));
    let mut customers = Vec::with_capacity(orders.len());
    for (name, fruit) in orders.iter().copied() {
        let serve = async move { sleep(MS * fruit.len() as u32).await.map(|_| fruit) };
        customers.push(spawn(name, serve).await);
    }
    let mut sold = BTreeMap::<_, u32>::new();
    for mut customer in customers {
        *sold.entry(customer.join().await??).or_default() += 1;
    }
    sold.into_iter().for_each(|(fruit, count)| note(format!("sold {fruit} {count}")));
    Ok(())
}
