//! Given: the words of the log.

use std::fmt;
use std::io::Write;

use super::*;

impl<M: Machine> Kernel<M> {
    /// Writes the first two lines of the log.
    pub(super) fn log_head(&mut self) {
        _ = writeln!(self.out, "#trace v3 clock={} seed=0 tick=0.3s", self.machine.name());
        _ = writeln!(self.out, "# time       turn    seq  id task     verb     detail");
    }

    pub(super) fn log_halt(&mut self) {
        let tasks = self.tasks.len();
        let tickets = self.tasks.values().filter(|task| task.wait.is_some()).count();
        let timers = self.timers.len();
        let handles = self.handles.len();
        let detail = format!("tasks={tasks} tickets={tickets} timers={timers} handles={handles}");
        self.log(KERNEL, "halt", &detail);
    }

    /// Returns a trap in the words of the log.
    pub(super) fn words(&self, id: TaskId, trap: &Trap) -> String {
        let until = |after| format!("{} until={}", span(after), time_of(self.now + after));
        match trap {
            Trap::Clock => "clock".to_owned(),
            Trap::Yield => "yield".to_owned(),
            Trap::Sleep(span) => format!("sleep {}", until(*span)),
            Trap::Spawn(new) => format!("spawn {}", new.name),
            Trap::Join(task) => format!("join {task}"),
            Trap::Io(handle, direction) => format!("io {} {direction}", self.handles[handle].alias),
            Trap::Open(ScopeKind::Timeout(span)) => format!("set_timeout {}", until(*span)),
            Trap::Open(ScopeKind::Shield) => "shield".to_owned(),
            Trap::Close(scope, _) => format!("{} s{scope}", self.innermost(id).closes()),
            Trap::Cancel(task) => format!("cancel {task}"),
            Trap::Offload(_) => format!("offload o{}", self.jobs.started + 1),
        }
    }

    pub(super) fn shown(&self, on: On) -> String {
        match on {
            On::Yield => "yield".to_owned(),
            On::Sleep(_) => "sleep".to_owned(),
            On::Join(task) => format!("join {task}"),
            On::Io(handle, direction) => format!("io {} {direction}", self.handles[&handle].alias),
            On::Job(job) => format!("offload o{job}"),
        }
    }
}

/// Returns a reply as the log writes it after ` = `.
pub(super) fn outcome(reply: &Reply) -> String {
    match reply {
        Reply::Done => "ok".to_owned(),
        Reply::Time(time) => time_of(*time),
        Reply::Task(task) => task.to_string(),
        Reply::Scope(scope) => format!("s{scope}"),
        Reply::Refused(error) => format!("!{}", said(error)),
        Reply::Interrupt(interrupt) => interrupt.to_string(),
    }
}

/// Returns a line in the source as the log writes it.
pub(super) fn at(site: Site) -> String {
    format!("at={}:{}", site.file(), site.line())
}

impl Scope {
    /// Returns the verb that closes the scope.
    pub(super) fn closes(&self) -> &'static str {
        match self.kind {
            ScopeKind::Timeout(_) => "unset_timeout",
            ScopeKind::Shield => "unshield",
        }
    }
}

impl Interrupt {
    /// Returns the interrupt with the place of its scope, for the log.
    pub(super) fn in_full(&self) -> String {
        let place = self.set_at.map(|site| format!(" set-{}", at(site)));
        format!("{self}{}", place.unwrap_or_default())
    }
}

impl fmt::Display for Interrupt {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match self.kind {
            Kind::TaskTimeout => "timeout",
            Kind::TimeoutCancellation => "timeout-cancellation",
            Kind::UncaughtTimeout => "uncaught-timeout",
            Kind::Cancelled => return write!(f, "!cancelled by={}", self.by),
        };
        write!(f, "!{word} scope=s{}", self.scope)
    }
}
