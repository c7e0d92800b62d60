//! Log lines that are kept. Frequent lines are kept as values, without an allocation; their text is
//! made on demand.

use std::borrow::Cow;
use std::rc::Rc;
use std::time::Duration;

use kernel::trace::{Answered, Arrival, Event, Line, Op, Outcome, Seq};
use traps::Time;

/// A kept line of the log.
#[derive(Clone)]
pub struct Kept {
    pub at: Time,
    turn: u64,
    pub seq: Seq,
    pub task: u64,
    name: Rc<str>,
    what: What,
}

#[derive(Clone)]
enum What {
    /// A `run` line with at most one answered ticket.
    Run {
        cause: Seq,
        parked: Option<Duration>,
        answered: Option<Answered<'static>>,
    },
    Event(Event<'static>),
    /// Any other line, as text, with its cause.
    Text(Rc<str>, Option<Seq>),
}

/// The names of phases, each stored once. They are parts of the program, so they are few.
#[derive(Default)]
pub struct Words(Vec<&'static str>);

impl Words {
    pub fn find(&mut self, word: &str) -> &'static str {
        // In nearly all cases it is the same constant.
        let same = |known: &&&str| std::ptr::eq::<str>(**known, word);
        if let Some(known) = self.0.iter().find(same) {
            return known;
        }
        if let Some(known) = self.0.iter().find(|known| **known == word) {
            return known;
        }
        let word: &'static str = Box::leak(word.into());
        self.0.push(word);
        word
    }
}

impl Kept {
    pub fn new(line: &Line<'_>, name: Rc<str>, words: &mut Words) -> Kept {
        let what = match &line.event {
            Event::Run { cause, messages: 0, parked, answered } => run(*cause, *parked, answered),
            event => value(event, words).map(What::Event),
        };
        let text = || What::Text(line.to_string().into(), line.event.cause());
        let what = what.unwrap_or_else(text);
        Kept { at: line.at, turn: line.turn, seq: line.seq, task: line.task, name, what }
    }

    pub fn name(&self) -> Rc<str> {
        self.name.clone()
    }

    pub fn cause(&self) -> Option<Seq> {
        match &self.what {
            What::Run { cause, .. } => Some(*cause),
            What::Event(event) => event.cause(),
            What::Text(_, cause) => *cause,
        }
    }

    /// Returns the line as the log shows it.
    pub fn text(&self) -> String {
        let event = match &self.what {
            What::Text(line, _) => return line.to_string(),
            What::Event(event) => event.clone(),
            What::Run { cause, parked, answered } => {
                let answered = answered.iter().cloned().collect();
                let (cause, answered) = (*cause, Cow::Owned(answered));
                Event::Run { cause, messages: 0, parked: *parked, answered }
            }
        };
        let Kept { at, turn, seq, task, .. } = *self;
        let name = self.name.to_string().into();
        Line { at, turn, seq, task, name, event, timed: None }.to_string()
    }
}

fn run(cause: Seq, parked: Option<Duration>, answered: &[Answered<'_>]) -> Option<What> {
    let answered = match answered {
        [] => None,
        [one] => Some(Answered { ticket: one.ticket, outcome: outcome(&one.outcome)? }),
        _ => return None,
    };
    Some(What::Run { cause, parked, answered })
}

/// Returns a copy of `event` that borrows nothing, or `None` if the event must be kept as text.
fn value(event: &Event<'_>, words: &mut Words) -> Option<Event<'static>> {
    Some(match event {
        Event::Await { op: of, wait } => Event::Await { op: op(of)?, wait: *wait },
        Event::Block { op: of, wait } => Event::Block { op: op(of)?, wait: *wait },
        Event::Trap { op: of, scope, outcome: to, cause, at } => Event::Trap {
            op: op(of)?,
            scope: *scope,
            outcome: outcome(to)?,
            cause: *cause,
            at: *at,
        },
        Event::Wake { op: of, ticket, cause } => {
            Event::Wake { op: op(of)?, ticket: *ticket, cause: *cause }
        }
        &Event::Spawn { parent, at } => Event::Spawn { parent, at },
        Event::Arrive(Arrival::Io { alias, direction }) => {
            Event::Arrive(Arrival::Io { alias: *alias, direction: *direction })
        }
        &Event::Io { alias, direction, bytes } => Event::Io { alias, direction, bytes },
        &Event::Accept { listener, connection, peer: None } => {
            Event::Accept { listener, connection, peer: None }
        }
        Event::Arm { timer, until, phase, at } => {
            Event::Arm { timer: *timer, until: *until, phase: words.find(phase).into(), at: *at }
        }
        &Event::Disarm { timer } => Event::Disarm { timer },
        &Event::Fire { timer, deadline, cause } => Event::Fire { timer, deadline, cause },
        &Event::Tick { fired, armed } => Event::Tick { fired, armed },
        &Event::Withdraw { ticket } => Event::Withdraw { ticket },
        &Event::Exit { how, cause } => Event::Exit { how, cause },
        &Event::Register { alias, why } => Event::Register { alias, why },
        &Event::Unregister { alias, why } => Event::Unregister { alias, why },
        &Event::Remember { alias, direction } => Event::Remember { alias, direction },
        _ => return None,
    })
}

fn op(of: &Op<'_>) -> Option<Op<'static>> {
    Some(match *of {
        Op::Clock => Op::Clock,
        Op::Yield => Op::Yield,
        Op::Sleep { span, until } => Op::Sleep { span, until },
        Op::Io { alias, direction } => Op::Io { alias, direction },
        Op::SetTimeout { span, until } => Op::SetTimeout { span, until },
        Op::UnsetTimeout { scope } => Op::UnsetTimeout { scope },
        Op::ConnectionDeadline => Op::ConnectionDeadline,
        Op::Guard { deadline } => Op::Guard { deadline },
        Op::Unguard { scope } => Op::Unguard { scope },
        Op::Branch => Op::Branch,
        Op::Unbranch { scope } => Op::Unbranch { scope },
        Op::Join { task } => Op::Join { task },
        Op::Signal => Op::Signal,
        Op::Wait { queue } => Op::Wait { queue },
        Op::Offload { job } => Op::Offload { job },
        Op::Waker => Op::Waker,
        Op::Foreign { external } => Op::Foreign { external },
        Op::Parked { tickets } => Op::Parked { tickets },
        _ => return None,
    })
}

fn outcome(of: &Outcome<'_>) -> Option<Outcome<'static>> {
    Some(match *of {
        Outcome::Ok => Outcome::Ok,
        Outcome::Time(time) => Outcome::Time(time),
        Outcome::Number(number) => Outcome::Number(number),
        Outcome::Scope(scope) => Outcome::Scope(scope),
        Outcome::Deadline(number) => Outcome::Deadline(number),
        _ => return None,
    })
}
