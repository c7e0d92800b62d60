// says: line 6 of src/lab.rs takes code from another file; `check` judges src/lab.rs alone, so write all of your code there
// demand: The `poll` is yours.
//! Yours: a future that yields a number of times.

#[path = "skeleton.rs"]
mod other;

pub use other::give_way;
