//! The text of a state, a line for each row.

use std::fmt;

use super::State;
use super::things::{DIRECTIONS, Descriptor, In, Key, Notified, Pending, Primitive};

/// The amount of detail in the text of a state.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// The part that the kernel shows at each line.
    Line,
    /// The part that the kernel shows between two events.
    Event,
    /// Everything that the log has.
    Whole,
}

/// The whole state, a line for each row.
impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(View::Whole))
    }
}

impl State {
    /// The rows in their order, a line each.
    #[must_use]
    pub fn text(&self, view: View) -> String {
        let mut text = String::new();
        for key in self.keys(view) {
            text += &self.row_in(&key).unwrap_or_default();
            text.push('\n');
        }
        text
    }

    /// The rows in the order of the text. Each of them has a text.
    #[must_use]
    pub fn keys(&self, view: View) -> Vec<Key> {
        let mut keys: Vec<Key> = [Key::Time, Key::Cpu, Key::Ready, Key::Next].into();
        for (id, task) in &self.tasks {
            keys.push(Key::Task(*id));
            if view != View::Line {
                keys.extend(task.scopes.iter().copied().map(Key::Scope));
                keys.extend(task.pending.iter().map(|pending| Key::Pending(*id, *pending)));
                keys.extend(task.waits.iter().copied().map(Key::Wait));
            }
        }
        if view != View::Line {
            keys.extend(self.timers.keys().map(|(_, name)| Key::Timer(*name)));
            keys.extend(self.armed.iter().map(|(_, number)| Key::Armed(*number)));
        }
        if view != View::Line {
            keys.extend(self.descriptors.keys().copied().map(Key::Descriptor));
            keys.extend(self.primitives.keys().cloned().map(Key::Primitive));
        }
        if view == View::Whole {
            keys.extend(self.notified.keys().cloned().map(Key::Notified));
            keys.extend(self.jobs.keys().copied().map(Key::Job));
            keys.extend([Key::Shutdown, Key::Messages]);
        }
        keys.retain(|key| self.has_row(key, view));
        keys
    }

    /// Returns the text of a row, without its indentation; `None` if there is no such row now.
    #[must_use]
    pub fn row(&self, key: &Key) -> Option<String> {
        self.row_in(key).map(|text| text.trim_start().to_owned())
    }

    /// Returns whether a row that is always listed has content.
    fn has_row(&self, key: &Key, view: View) -> bool {
        match key {
            Key::Cpu => self.cpu.is_some(),
            Key::Ready => self.ready().next().is_some(),
            Key::Next => self.next().next().is_some(),
            Key::Shutdown => self.shutdown.is_some(),
            Key::Messages => self.messages.is_some(),
            Key::Primitive(op) => view == View::Whole || !self.primitives[op].waits.is_empty(),
            Key::Notified(op) => self.awaited(op).is_some(),
            _ => true,
        }
    }

    /// Returns the last notification of the primitive that a task waits for.
    fn awaited(&self, op: &str) -> Option<Notified> {
        let notified = self.notified.get(op).copied();
        notified.filter(|_| self.primitives.get(op).is_some_and(|it| !it.waits.is_empty()))
    }

    fn row_in(&self, key: &Key) -> Option<String> {
        Some(match key {
            Key::Time => format!("{} turn {}", self.at, self.turn),
            Key::Cpu => format!("cpu {}", self.cpu?),
            Key::Ready => queue("ready", self.ready())?,
            Key::Next => queue("next", self.next())?,
            Key::Task(id) => {
                let task = self.tasks.get(id)?;
                format!("{id} {} {} since={}", task.name, task.doing, task.since)
            }
            Key::Scope(number) => {
                let scope = self.scopes.get(number)?;
                let until = scope.until.map_or(String::new(), |until| format!(" until={until}"));
                let inside = inside(scope.parent);
                format!("  s{number} {} #{:04}{until}{inside}", scope.kind, scope.seq)
            }
            Key::Pending(task, pending) => {
                let pending = self.tasks.get(task)?.pending.get(pending)?;
                format!("  {pending}")
            }
            Key::Wait(ticket) => {
                let wait = self.waits.get(ticket)?;
                format!("  k={ticket} {} #{:04}{}", wait.op, wait.seq, inside(wait.scope))
            }
            Key::Timer(name) => format!("timer {} {name}", self.timer(*name)?),
            Key::Armed(number) => {
                format!("armed d{number} {}", self.deadlines.get(number)?.until?)
            }
            Key::Descriptor(alias) => {
                format!("{alias}{}", self.descriptor(self.descriptors.get(alias)?))
            }
            Key::Primitive(op) => {
                let primitive = self.primitives.get(op)?;
                format!("{op}{}", self.primitive(primitive))
            }
            Key::Notified(op) => {
                let Notified { seq, by, woke } = self.awaited(op)?;
                format!("notified {op} #{seq:04} by={by} woke={woke}")
            }
            Key::Job(number) => {
                let job = self.jobs.get(number)?;
                format!("job o{number} {} by={}", job.doing, job.task)
            }
            Key::Shutdown => {
                let shutdown = self.shutdown.as_ref()?;
                let until = shutdown.until.map_or(String::new(), |until| format!(" until={until}"));
                format!("shutdown {}{until}", shutdown.phase)
            }
            Key::Messages => format!("messages {}", self.messages?),
        })
    }

    fn descriptor(&self, descriptor: &Descriptor) -> String {
        let mut text = String::new();
        if descriptor.is_registered {
            text += " registered";
        }
        for (direction, ticket) in DIRECTIONS.iter().zip(descriptor.waits) {
            if let Some(wait) = ticket.and_then(|ticket| self.waits.get(&ticket)) {
                text += &format!(" {direction}={}", wait.task);
            }
        }
        let ready = DIRECTIONS.iter().zip(descriptor.ready).filter(|(_, is_ready)| *is_ready);
        let ready: Vec<&str> = ready.map(|(direction, _)| *direction).collect();
        if !ready.is_empty() {
            text += &format!(" ready={}", ready.join(","));
        }
        text
    }

    fn primitive(&self, primitive: &Primitive) -> String {
        let waits = primitive.waits.iter().filter_map(|ticket| self.waits.get(ticket));
        let holders = numbers(" held-by=", ",", primitive.holders.keys().copied());
        let waits = numbers(" waits=", ",", waits.map(|wait| wait.task));
        holders.unwrap_or_default() + &waits.unwrap_or_default()
    }
}

fn queue(word: &str, tasks: impl Iterator<Item = u64>) -> Option<String> {
    numbers(&format!("{word} "), " ", tasks)
}

/// Returns numbers after a word; `None` if there are none.
fn numbers(word: &str, between: &str, numbers: impl Iterator<Item = u64>) -> Option<String> {
    let numbers: Vec<String> = numbers.map(|number| number.to_string()).collect();
    (!numbers.is_empty()).then(|| format!("{word}{}", numbers.join(between)))
}

/// Returns ` in=sN`, unless the scope is the task itself.
fn inside(scope: In) -> String {
    scope.map_or(String::new(), |scope| format!(" in=s{scope}"))
}

/// Prints the row without its indentation.
impl fmt::Display for Pending {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.source {
            None => f.write_str("pending root")?,
            Some(source) => write!(f, "pending s{source}")?,
        }
        if self.place == self.source { Ok(()) } else { f.write_str(&inside(self.place)) }
    }
}
