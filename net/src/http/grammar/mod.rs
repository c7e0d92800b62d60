//! The grammar of HTTP: heads, chunks and dates. Pure functions over bytes, without waits.

pub(crate) mod chunked;
pub(crate) mod date;
pub(crate) mod head;
