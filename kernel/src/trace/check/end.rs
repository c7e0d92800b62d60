//! The oracle's rules about the end of a kernel.

use super::super::{Line, Phase, Timer};
use super::{Alarm, Oracle, Scope, Ticket};

impl Oracle {
    /// Two phases of a shutdown set what ends them; all are between two tasks.
    pub(super) fn phase(&mut self, line: &Line<'_>, phase: &Phase<'_>) {
        if let Phase::Gate { cause: Some(cause), .. } = phase {
            self.cause(line, *cause);
        }
        self.turn.iter_mut().for_each(|turn| turn.task = 0);
        match phase {
            Phase::Drain { .. } => self.set(Timer::Drain),
            Phase::Cancel { .. } => self.set(Timer::Grace),
            Phase::Gate { .. } | Phase::Cleanup { .. } | Phase::Drop { .. } => {}
        }
    }

    pub(super) fn halt(&mut self, line: &Line<'_>, tasks: u64, tickets: u64, timers: u64) {
        let open = self.tickets.iter().filter(|(_, state)| **state == Ticket::Open);
        let open: Vec<u64> = open.map(|(ticket, _)| *ticket).collect();
        for ticket in open.into_iter().filter(|_| tickets == 0) {
            self.report(line, "ticket", format!("k={ticket} is open"));
        }
        let is_armed = |(timer, alarm): &(&Timer, &Alarm)| {
            **alarm == Alarm::Armed && !matches!(timer, Timer::Sleep(_))
        };
        let armed: Vec<Timer> = self.alarms.iter().filter(is_armed).map(|a| *a.0).collect();
        for timer in armed.into_iter().filter(|_| timers == 0) {
            self.report(line, "timer", format!("{timer} is armed"));
        }
        let limited = self.scopes.iter().filter(|(_, state)| **state == Scope::Limited);
        let limited: Vec<u64> = limited.map(|(scope, _)| *scope).collect();
        for scope in limited.into_iter().filter(|_| tasks == 0) {
            self.report(line, "scope", format!("s{scope} is open"));
        }
    }
}
