//! Jobs as a machine sees them: it may play them by a script, in place of a thread.

use std::sync::Arc;

use traps::Time;
use traps::threads::{ThreadContext, Work};

/// A job as it is handed to whatever runs it.
pub struct Parcel {
    pub work: Arc<dyn Work>,
    pub context: ThreadContext,
}

impl Parcel {
    /// Runs the job. A panic of it is caught and kept for its caller.
    pub fn run(self) {
        let Parcel { work, context } = self;
        // The job itself catches its panic; this is for one that does not.
        let _ = context.run(|| work.run());
    }
}

/// Tells that a job has ended, from any thread. Must not block or panic.
pub type Deliver = Arc<dyn Fn(u64) + Send + Sync>;

/// A job as its owner sees it.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct JobView {
    /// Its number, `o3` in the log.
    pub number: u64,
    /// `queued`, `running`, or `abandoned`: its caller was answered first.
    pub state: &'static str,
    /// The task that asked for it.
    pub task: u64,
    /// That task's name.
    pub name: String,
    /// Since when it is queued, or has its token.
    pub since: Time,
    /// Where it was asked for, `file:line`.
    pub site: String,
    /// The name of its limiter, if it has one.
    pub limiter: Option<&'static str>,
}
