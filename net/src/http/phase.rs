//! The deadlines of a connection: which phase it waits in, and until when.
//!
//! The one place that opens scopes. Nothing else in this module may, so that another kind of
//! deadline can take their place here.

use std::future::Future;
use std::io;
use std::time::Duration;

use traps::{IgnoreAfter, Time, clock, ignore_after, ignore_at};

use super::config::Deadlines;

/// What a connection waits for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// The rest of a head, or the first byte of the first one.
    Head,
    /// A piece of a body.
    Body,
    /// The peer to take some of the answer.
    Write,
    /// The first byte of the next request.
    Idle,
    /// The peer to stop sending after an answer that refused.
    Linger,
}

/// The deadline of the phase that a connection is in.
#[derive(Debug, Default)]
pub(crate) struct Watch {
    /// Of a phase that has one for all its waits together; set by the first of them.
    total: Option<(Phase, Time)>,
}

/// Until when one wait may last.
pub(crate) enum Until {
    After(Duration),
    At(Time),
}

impl Watch {
    /// The deadline for a wait in `phase` that begins now.
    pub(crate) async fn enter(&mut self, phase: Phase, deadlines: &Deadlines) -> Until {
        let total = match phase {
            Phase::Body => return Until::After(deadlines.body),
            Phase::Write => return Until::After(deadlines.write),
            Phase::Idle => return Until::After(deadlines.idle),
            Phase::Head => deadlines.head,
            Phase::Linger => deadlines.linger,
        };
        match self.total {
            Some((begun, at)) if begun == phase => Until::At(at),
            _ => {
                let at = clock().await + total;
                self.total = Some((phase, at));
                Until::At(at)
            }
        }
    }

    /// The phase in hand is over: the next one gets a deadline of its own.
    #[inline]
    pub(crate) fn leave(&mut self) {
        self.total = None;
    }
}

impl Until {
    /// Runs `wait` under the deadline; `Ok(None)` if it passed.
    #[track_caller]
    pub(crate) fn guard<T, F>(self, wait: F) -> IgnoreAfter<F>
    where
        F: Future<Output = io::Result<T>>,
    {
        match self {
            Until::After(span) => ignore_after(span, wait),
            Until::At(at) => ignore_at(at, wait),
        }
    }
}
