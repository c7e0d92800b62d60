//! What may end a wait early: the second reading, after `core/`.

pub mod interrupt;
pub mod pending;
pub mod scope;
