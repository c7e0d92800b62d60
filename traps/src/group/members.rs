//! The members of a group.

use std::cell::RefCell;
use std::collections::BTreeMap;

use crate::task::Task;

/// By number; those whose end the group has not looked at.
pub(super) type Members<T, E> = RefCell<BTreeMap<u64, Entry<T, E>>>;

pub(super) struct Entry<T, E> {
    pub(super) task: Task<Result<T, E>>,
    pub(super) is_daemon: bool,
}
