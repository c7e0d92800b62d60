//! Given: the words of the log.

use super::*;

impl<M: Machine> Kernel<M> {
    /// Returns a trap in the words of the log.
    pub(super) fn words(&self, trap: &Trap) -> String {
        let until = |after| format!("{} until={}", span(after), time_of(self.now + after));
        match trap {
            Trap::Clock => "clock".to_owned(),
            Trap::Yield => "yield".to_owned(),
            Trap::Sleep(span) => format!("sleep {}", until(*span)),
        }
    }
}

/// Returns a reply as the log writes it after ` = `.
pub(super) fn outcome(reply: &Reply) -> String {
    match reply {
        Reply::Done => "ok".to_owned(),
        Reply::Time(time) => time_of(*time),
    }
}
