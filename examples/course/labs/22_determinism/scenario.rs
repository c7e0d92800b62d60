//! The orders of this lab, drawn from a seed. Seed 0 is the scenario of the page.

use crate::draw::draw;

/// The orders of a day: the name of each customer, and what it orders. They are in no order.
pub type Orders = Vec<(&'static str, &'static str)>;

/// The first eight are those of the page. Two of the others share two letters with `lisa`; one
/// comes before her, the other after her.
const CUSTOMERS: [&str; 14] = [
    "lisa", "bob", "sophie", "eve", "al", "oscar", "kim", "maria", "liam", "lizzy", "zoe", "ida",
    "paul", "carla",
];

/// The last two share three letters and five with others.
const FRUITS: [&str; 8] =
    ["plums", "figs", "pears", "quinces", "cherries", "apples", "peaches", "cherry"];

/// The scenario of a seed.
pub fn of(seed: u64) -> Orders {
    if seed == 0 {
        return [0, 1, 4, 2, 0, 1, 1, 3].into_iter().enumerate().map(order).collect();
    }
    // The names of the guests share all letters but the last.
    let count = CUSTOMERS.len() + if seed == 1 { 800 } else { 200 };
    // Each fruit is ordered, and the customers after the first eight choose. In scenario 1 a byte
    // does not hold the sales of the first fruit.
    let fruits = (0..count).map(|nth| match nth {
        0..8 => nth,
        _ => (draw(seed, nth as u64, 16) as usize).saturating_sub(8),
    });
    let mut orders: Orders = fruits.enumerate().map(order).collect();
    orders.rotate_left(draw(seed, 2, count as u64) as usize);
    orders
}

/// The order of the customer with that place in the list.
fn order((customer, fruit): (usize, usize)) -> (&'static str, &'static str) {
    let guest = || &*Box::leak(format!("guest-{customer}").into_boxed_str());
    (CUSTOMERS.get(customer).copied().unwrap_or_else(guest), FRUITS[fruit])
}
