//! What the members of a group report to it.

use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::rc::Rc;
use std::thread;

use crate::sync::WaitQueue;

/// What members report to their group.
///
/// Reports are kept in a list, and a wake only says that there is one: if a wake is lost with the
/// future that it woke, the report is still there.
#[derive(Debug, Default)]
pub(super) struct Reports {
    /// How many members there were; they are numbered from 1.
    pub(super) spawned: Cell<u64>,
    /// How many have not ended, daemons apart.
    pub(super) alive: Cell<u64>,
    /// How many daemons have not ended.
    pub(super) daemons: Cell<u64>,
    /// In the order of ending; those that the group has not looked at.
    pub(super) ended: RefCell<VecDeque<Report>>,
    pub(super) line: WaitQueue,
    /// Why the members were cancelled, while the group cleans up and once it is gone. New members
    /// are then cancelled at once, and what members fail with is no news.
    pub(super) closing: Cell<Option<&'static str>>,
}

impl Reports {
    /// Whether a member or a daemon has not ended.
    pub(super) fn is_any_alive(&self) -> bool {
        self.alive.get() + self.daemons.get() > 0
    }
}

/// A member has ended.
#[derive(Clone, Copy, Debug)]
pub(super) struct Report {
    /// Its number in the group.
    pub(super) member: u64,
    /// Whether by a panic, or by an error that is not its own cancellation. A daemon never fails.
    pub(super) failed: bool,
}

/// Reports when it is dropped: after the end, by a panic, or because the kernel drops the member's
/// future.
pub(super) struct Reporter {
    to: Rc<Reports>,
    report: Report,
    is_daemon: bool,
}

impl Reporter {
    /// Of a new member, and its number.
    pub(super) fn new(to: &Rc<Reports>, is_daemon: bool) -> (u64, Reporter) {
        let member = to.spawned.get() + 1;
        to.spawned.set(member);
        let report = Report { member, failed: false };
        let reporter = Reporter { to: to.clone(), report, is_daemon };
        reporter.alive().set(reporter.alive().get() + 1);
        (member, reporter)
    }

    fn alive(&self) -> &Cell<u64> {
        if self.is_daemon { &self.to.daemons } else { &self.to.alive }
    }

    pub(super) fn set_failed(&mut self, failed: bool) {
        self.report.failed = failed;
    }
}

impl Drop for Reporter {
    fn drop(&mut self) {
        self.report.failed |= thread::panicking();
        self.report.failed &= !self.is_daemon;
        self.alive().set(self.alive().get() - 1);
        self.to.ended.borrow_mut().push_back(self.report);
        self.to.line.wake(1);
    }
}
