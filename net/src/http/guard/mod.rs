//! The guard of a server: which connections may stay, how much memory they may make it keep, and
//! what the log reports of them. To follow a plain GET, nothing in this folder need be read.

pub(super) mod access_log;
pub(super) mod caps;
pub(super) mod connections;
pub(crate) mod memory;
pub(super) mod place;
mod queues;
