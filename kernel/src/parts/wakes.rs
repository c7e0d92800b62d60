//! Task 1, `wakeup`: it empties the wake queue.

use std::mem;

use traps::internal::table::{Direction, TaskRef, Ticket};
use traps::internal::tape::{self, Answer, Words, escaped, unescaped};

use super::wakers::{Inbox, Message};
use crate::core::sched::Sched;
use crate::log::lines::emit_for;
use crate::log::{KERNEL, WAKEUP};
use crate::machine::Machine;
use crate::trace::{Arrival, Event, Op, Parent, Seq};

/// The state of task 1.
pub(crate) struct Wakeup {
    pub(crate) inbox: Inbox,
    /// Whether the task exists, because the kernel has begun its first run.
    pub(crate) has_begun: bool,
    /// Whether the task has had its first run. From then on it waits for the bell.
    pub(crate) has_run: bool,
    /// The number of the task's last log line.
    pub(crate) line: Seq,
    messages: Vec<Message>,
    /// The number of messages so far.
    pub(crate) wakes: u64,
    /// The number of batches so far in which they came.
    pub(crate) batches: u64,
}

impl Wakeup {
    pub(crate) fn new(inbox: Inbox) -> Wakeup {
        Wakeup {
            inbox,
            has_begun: false,
            has_run: false,
            line: 0,
            messages: Vec::new(),
            wakes: 0,
            batches: 0,
        }
    }

    #[inline]
    pub(crate) fn has_messages(&self, is_taped: bool, turn: u64) -> bool {
        if is_taped && tape::answers() {
            return tape::is_next(&format!("messages {turn}"));
        }
        !self.inbox.queue.is_empty()
    }

    /// Begins a run of the task. Returns the messages, to be given back, and the `run` line.
    pub(crate) fn begin(
        &mut self,
        sched: &mut Sched<impl Machine>,
        is_taped: bool,
    ) -> (Vec<Message>, Seq) {
        let mut messages = mem::take(&mut self.messages);
        self.inbox.queue.drain(&mut messages);
        if is_taped {
            messages = taped(sched.turn, messages);
        }
        let (alias, direction) = (sched.log.names.bell(), Direction::Read);
        if mem::replace(&mut self.has_run, true) {
            emit_for!(sched, KERNEL, Event::Arrive(Arrival::Io { alias, direction }));
            let (op, cause) = (Op::Io { alias, direction }, sched.log.cause);
            self.line = emit_for!(sched, WAKEUP, Event::Wake { op, ticket: None, cause });
        }
        self.batches += u64::from(!messages.is_empty());
        self.wakes += messages.len() as u64;
        sched.run.messages = true;
        let (cause, number) = (self.line, messages.len() as u64);
        let answered = Vec::new().into();
        let event = Event::Run { cause, messages: number, parked: None, answered };
        let run = emit_for!(sched, WAKEUP, event);
        (messages, run)
    }

    /// Ends a run of the task, and keeps the emptied list of messages.
    pub(crate) fn end(&mut self, sched: &mut Sched<impl Machine>, messages: Vec<Message>) {
        self.messages = messages;
        sched.run.messages = false;
        let op = Op::Io { alias: sched.log.names.bell(), direction: Direction::Read };
        self.line = emit_for!(sched, WAKEUP, Event::Block { op, wait: None });
    }

    /// Logs the first lines of a trace, once.
    pub(crate) fn boot(&mut self, sched: &mut Sched<impl Machine>, facts: String) {
        if mem::replace(&mut self.has_begun, true) {
            return;
        }
        sched.log.boot((sched.now, sched.turn), facts);
        let event = Event::Spawn { parent: Parent::Kernel, at: None };
        self.line = emit_for!(sched, WAKEUP, event);
    }
}

/// Records the messages that the kernel moves in this turn, or returns those of the record, which
/// has those of the jobs too.
fn taped(turn: u64, messages: Vec<Message>) -> Vec<Message> {
    let put = |messages: &Vec<Message>, words: &mut Words| {
        words.number(turn);
        messages.iter().for_each(|message| words.word(&put_message(message)));
    };
    let get = |answer: &mut Answer<'_>| {
        let mut messages = Vec::new();
        if answer.number() != turn {
            return answer.wrong();
        }
        while !answer.is_empty() {
            let word = answer.word();
            match get_message(word) {
                Some(message) => messages.push(message),
                None => {
                    tape::diverge(&format!("the request `{word}` of a thread cannot be replayed"));
                    return answer.wrong();
                }
            }
        }
        messages
    };
    tape::input("messages", || messages, put, get)
}

fn put_message(message: &Message) -> String {
    let before = tape::serial();
    match message {
        Message::Wake(it) => format!("wake:{}.{}", it.index, it.serial().wrapping_sub(before)),
        Message::Unpark(it) => format!("unpark:{}.{}", it.index, it.serial().wrapping_sub(before)),
        Message::Done(job) => format!("done:{job}"),
        Message::ShutDown(reason) => format!("shutdown:{}", escaped(reason.as_bytes())),
        Message::Turn => "turn".to_owned(),
        Message::Spawn(order) => format!("spawn:{}", escaped(order.name.as_bytes())),
        Message::Cancel(..) => "cancel".to_owned(),
    }
}

/// Reads a message. Returns `None` for a message that cannot be replayed: the code of a task that
/// another thread spawned is not in the record.
fn get_message(word: &str) -> Option<Message> {
    let (kind, value) = word.split_once(':').unwrap_or((word, ""));
    let key = || -> Option<(u32, u32)> {
        let (index, serial) = value.split_once('.')?;
        Some((index.parse().ok()?, tape::serial().wrapping_add(serial.parse().ok()?)))
    };
    Some(match kind {
        "wake" => key().map(|(index, serial)| Message::Wake(TaskRef::new(index, serial)))?,
        "unpark" => key().map(|(index, serial)| Message::Unpark(Ticket::new(index, serial)))?,
        "done" => Message::Done(value.parse().ok()?),
        // A shutdown has one reason, so this is lost once.
        "shutdown" => {
            let reason = unescaped(value.as_bytes());
            Message::ShutDown(String::from_utf8_lossy(&reason).into_owned().leak())
        }
        "turn" => Message::Turn,
        _ => return None,
    })
}
