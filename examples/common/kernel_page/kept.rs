//! Lines of the log that are kept. Those that come often are kept as values, without an allocation;
//! text is made for who asks.

use std::borrow::Cow;
use std::rc::Rc;
use std::time::Duration;

use kernel::trace::{Answered, Arrival, Event, Line, Op, Outcome, QueueOp, Seq, Site, WakeOp};
use traps::Time;

/// A line of the log.
#[derive(Clone)]
pub struct Kept {
    at: Time,
    turn: u64,
    pub seq: Seq,
    pub task: u64,
    name: Rc<str>,
    what: What,
}

#[derive(Clone)]
enum What {
    /// A `run` with one answer at most.
    Run {
        cause: Seq,
        parked: Option<Duration>,
        answered: Option<Answered<'static>>,
    },
    Event(Event<'static>),
    /// The whole line.
    Text(Rc<str>),
}

/// The names of source files and phases, each once. They are parts of the program, so they are few.
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

    fn text(&mut self, text: &str) -> Cow<'static, str> {
        Cow::Borrowed(self.find(text))
    }

    fn site(&mut self, site: Option<&Site<'_>>) -> Option<Site<'static>> {
        site.map(|site| Site { file: self.text(&site.file), line: site.line })
    }
}

impl Kept {
    pub fn new(line: &Line<'_>, name: Rc<str>, words: &mut Words) -> Kept {
        let what = match &line.event {
            Event::Run { cause, parked, answered } => run(*cause, *parked, answered),
            event => value(event, words).map(What::Event),
        };
        let what = what.unwrap_or_else(|| What::Text(line.to_string().into()));
        Kept { at: line.at, turn: line.turn, seq: line.seq, task: line.task, name, what }
    }

    pub fn name(&self) -> Rc<str> {
        self.name.clone()
    }

    /// As the log has it.
    pub fn text(&self) -> String {
        let event = match &self.what {
            What::Text(line) => return line.to_string(),
            What::Event(event) => event.clone(),
            What::Run { cause, parked, answered } => {
                let answered = answered.iter().cloned().collect();
                Event::Run { cause: *cause, parked: *parked, answered: Cow::Owned(answered) }
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

/// An event that borrows nothing from who made it, if that takes no allocation.
fn value(event: &Event<'_>, words: &mut Words) -> Option<Event<'static>> {
    Some(match event {
        Event::Await { op: of, ticket, reg, at } => {
            Event::Await { op: op(of)?, ticket: *ticket, reg: *reg, at: words.site(at.as_ref()) }
        }
        Event::Block { op: of, ticket, reg, at } => {
            Event::Block { op: op(of)?, ticket: *ticket, reg: *reg, at: words.site(at.as_ref()) }
        }
        Event::Trap { op: of, outcome: to, cause, at } => Event::Trap {
            op: op(of)?,
            outcome: outcome(to)?,
            cause: *cause,
            at: words.site(at.as_ref()),
        },
        Event::Wake { op, ticket, cause } => {
            Event::Wake { op: wake_op(op)?, ticket: *ticket, cause: *cause }
        }
        Event::Spawn { parent, cause, at } => {
            Event::Spawn { parent: *parent, cause: *cause, at: words.site(at.as_ref()) }
        }
        Event::Arrive(Arrival::Io { alias, direction }) => {
            Event::Arrive(Arrival::Io { alias: *alias, direction: *direction })
        }
        &Event::Io { alias, direction, bytes } => Event::Io { alias, direction, bytes },
        &Event::Accept { listener, connection, peer: None } => {
            Event::Accept { listener, connection, peer: None }
        }
        Event::Arm { timer, until, phase, at } => Event::Arm {
            timer: *timer,
            until: *until,
            phase: words.text(phase),
            at: words.site(at.as_ref()),
        },
        &Event::Disarm { timer } => Event::Disarm { timer },
        &Event::Fire { timer, deadline, cause } => Event::Fire { timer, deadline, cause },
        &Event::Tick { fired, armed } => Event::Tick { fired, armed },
        &Event::Withdraw { ticket } => Event::Withdraw { ticket },
        &Event::Exit { how, cause } => Event::Exit { how, cause },
        &Event::Register { alias, why } => Event::Register { alias, why },
        &Event::Unregister { alias, why } => Event::Unregister { alias, why },
        &Event::Remember { alias, direction, n } => Event::Remember { alias, direction, n },
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
        Op::Queue(ref queue) => Op::Queue(queue_op(queue)?),
        Op::Offload { job } => Op::Offload { job },
        Op::Waker => Op::Waker,
        Op::Foreign { external } => Op::Foreign { external },
        Op::Parked { tickets } => Op::Parked { tickets },
        _ => return None,
    })
}

fn wake_op(of: &WakeOp<'_>) -> Option<WakeOp<'static>> {
    Some(match *of {
        WakeOp::Yield => WakeOp::Yield,
        WakeOp::Sleep => WakeOp::Sleep,
        WakeOp::Io { alias, direction } => WakeOp::Io { alias, direction },
        WakeOp::Queue(ref queue) => WakeOp::Queue(queue_op(queue)?),
        WakeOp::Offload { job } => WakeOp::Offload { job },
        WakeOp::Waker => WakeOp::Waker,
        WakeOp::Outside => WakeOp::Outside,
        _ => return None,
    })
}

fn queue_op(of: &QueueOp<'_>) -> Option<QueueOp<'static>> {
    match of {
        QueueOp::Join { task } => Some(QueueOp::Join { task: *task }),
        QueueOp::Signal => Some(QueueOp::Signal),
        QueueOp::Wait { queue } => Some(QueueOp::Wait { queue: *queue }),
        QueueOp::Primitive(_) => None,
    }
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
