//! Sorted lists, and a till: a task of its own that counts.

use std::collections::HashMap;

use traps::channel::mpsc::{self, Receiver};
use traps::{Error, note, sleep, spawn};

use super::given::{MS, Orders};

/// A HashMap is harmless if its order is never seen.
pub async fn shop(mut orders: Orders) -> Result<(), Error> {
    orders.sort();
    let (sender, sales) = mpsc::channel(4);
    let mut till = spawn("till", count(sales, orders.len())).await;
    let mut customers = Vec::new();
    for (name, fruit) in orders {
        let sender = sender.clone();
        let serve = async move {
            sleep(MS * fruit.len() as u32).await?;
            sender.send(fruit).await.map_err(|rejected| rejected.why)
        };
        customers.push(spawn(name, serve).await);
    }
    for customer in &mut customers {
        customer.join().await??;
    }
    let mut sold: Vec<_> = till.join().await??.into_iter().collect();
    sold.sort();
    for (fruit, count) in sold {
        note(format!("sold {fruit} {count}"));
    }
    Ok(())
}

async fn count(
    mut sales: Receiver<&'static str>,
    orders: usize,
) -> Result<HashMap<&'static str, u32>, Error> {
    let mut sold = HashMap::new();
    for _ in 0..orders {
        *sold.entry(sales.recv().await?).or_insert(0) += 1;
    }
    Ok(sold)
}
