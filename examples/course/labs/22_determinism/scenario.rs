//! The orders of this lab, drawn from a seed. Seed 0 is the scenario of the page.

use crate::draw::draw;

/// The orders of a day: the name of each customer, and what it orders. They are in no order.
pub type Orders = Vec<(&'static str, &'static str)>;

const CUSTOMERS: [&str; 12] =
    ["lisa", "bob", "sophie", "eve", "al", "oscar", "kim", "maria", "zoe", "ida", "paul", "carla"];

const FRUITS: [&str; 6] = ["plums", "figs", "pears", "quinces", "cherries", "apples"];

/// The scenario of a seed.
pub fn of(seed: u64) -> Orders {
    let count = match seed {
        0 => return [0, 1, 4, 2, 0, 1, 1, 3].into_iter().enumerate().map(order).collect(),
        1 => 12,
        _ => 8 + draw(seed, 1, 4) as usize,
    };
    let fruits = (0..count).map(|nth| draw(seed, 10 + nth as u64, 6) as usize);
    let mut orders: Orders = fruits.enumerate().map(order).collect();
    orders.rotate_left(draw(seed, 2, count as u64) as usize);
    orders
}

/// The order of the customer with that place in the list.
fn order((customer, fruit): (usize, usize)) -> (&'static str, &'static str) {
    (CUSTOMERS[customer], FRUITS[fruit])
}
