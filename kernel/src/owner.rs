//! Whose timer it is: what the kernel reads in the 32 bits that a timer has for its owner.
//!
//! Two bits are the kind, the rest is a place in a table. Those of connection deadlines are the
//! tasks' too, which give one to a guard, or take it from there, by a store.

use traps::deadline_table::{BARE, GUARD};
use traps::protocol::HOME;

pub(crate) use crate::timers::Owner;

/// An owner, read.
#[derive(Clone, Copy)]
pub(crate) enum Whose {
    /// Of the ticket at that place.
    Sleep(u32),
    Scope(u32),
    /// A connection deadline, in a guard that has this scope.
    Guard(u32),
    /// A connection deadline without a guard, of this task.
    Bare(u32),
    /// Of the phase of the shutdown.
    Phase,
    /// Of jobs that no thread took: they are tried again.
    Retry,
}

impl Owner {
    const KIND: u32 = 0b11 << 30;
    const SCOPE: u32 = 0b01 << 30;
    /// Of a sleep: its ticket is at home.
    const AT_HOME: u32 = 1 << 29;
    pub(crate) const PHASE: Owner = Owner(!Self::KIND);
    pub(crate) const RETRY: Owner = Owner(!Self::KIND - 1);
    /// Of a connection deadline whose task has ended.
    pub(crate) const NOBODY: Owner = Owner(!Self::SCOPE);

    pub(crate) fn sleep(ticket: u32) -> Owner {
        let home = if ticket & HOME == 0 { 0 } else { Self::AT_HOME };
        Owner(ticket & !HOME | home)
    }

    pub(crate) fn scope(index: u32) -> Owner {
        Owner(index | Self::SCOPE)
    }

    pub(crate) fn guard(index: u32) -> Owner {
        Owner(index | GUARD)
    }

    pub(crate) fn whose(self) -> Whose {
        let place = self.0 & !Self::KIND;
        match self.0 & Self::KIND {
            GUARD => Whose::Guard(place),
            BARE => Whose::Bare(place),
            Self::SCOPE => Whose::Scope(place),
            _ if self == Self::PHASE => Whose::Phase,
            _ if self == Self::RETRY => Whose::Retry,
            _ if place & Self::AT_HOME != 0 => Whose::Sleep(place & !Self::AT_HOME | HOME),
            _ => Whose::Sleep(place),
        }
    }
}
