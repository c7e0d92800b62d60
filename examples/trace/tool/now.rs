//! The state of a program at a line of its log, updated line by line. Ended things are forgotten,
//! so that a log of any length needs memory only for the tasks that live at the same time.

use std::collections::BTreeMap;

use testing::trace::{Flight, Line};

use super::living::{Kind, Living, Mark, Piece, SHOWN, Scope};
use super::model::{State, Trace, is_primitive};
use super::stuck::{self, Closed, Holders, Of};

/// A connection deadline.
#[derive(Clone, Debug, Default)]
struct Deadline {
    owner: u64,
    is_armed: bool,
    phase: Option<Box<str>>,
}

/// The largest number of remembered connections that no task has used yet.
const UNUSED: usize = 10_000;

/// The largest number of remembered circles.
const CIRCLES: usize = 20;

/// The program at a line of its log.
#[derive(Debug, Default)]
pub struct Now {
    /// All tasks that have not ended, by number.
    pub tasks: BTreeMap<u64, Living>,
    /// The holders of the primitives that tasks wait for.
    pub holders: Holders,
    /// The first circles of tasks that waited for each other, whether or not they are over.
    pub circles: Vec<Closed>,
    /// The last line.
    pub last: Mark,
    /// Whether the log has the measured time of each run.
    pub is_timed: bool,
    /// The remark of a dump of the flight recorder, if the log is one.
    pub flight: Option<Flight>,
    /// Whether the last line was in its head.
    pub is_head: bool,
    deadlines: BTreeMap<u64, Deadline>,
    /// The peers of connections that no task has used yet.
    peers: BTreeMap<u64, Box<str>>,
}

/// Parses the number in a name such as `c1`, after that letter.
fn number(word: &str, letter: char) -> Option<u64> {
    word.strip_prefix(letter)?.parse().ok()
}

impl Now {
    /// Before the first line of a trace.
    pub fn before(trace: &Trace) -> Now {
        Now { flight: trace.whole.flight(), ..Now::default() }
    }

    /// At the end of a trace.
    pub fn of(trace: &Trace) -> Now {
        let mut now = Now::before(trace);
        trace.each(|_, line| drop(now.line(line)));
        now
    }

    /// Returns the piece of a life that the line ends, if the log has all of it. Call this before
    /// [`Now::line`].
    pub fn ends(&self, line: &Line<'_>) -> Option<Piece<'_>> {
        let task = self.tasks.get(&line.task)?;
        let state = task.state?;
        let is_over = State::after(task.state, line.verb).is_some() || line.verb == "exit";
        let span = line.at.since(task.from.at).saturating_sub(task.owed);
        let is_known = state.lasts_until(line.verb);
        (is_over && is_known).then_some(Piece { task, state, from: task.from, span })
    }

    /// Follows a remark.
    pub fn remark(&mut self, text: &str) {
        self.flight = Flight::parse(text).or(self.flight);
    }

    /// Follows the next line. Returns a task that ends with it.
    pub fn line(&mut self, line: &Line<'_>) -> Option<Living> {
        let is_head = self.flight.is_some_and(|flight| line.seq < flight.from);
        if std::mem::replace(&mut self.is_head, is_head) && !is_head {
            self.holders.begin();
            self.circles = stuck::open(self);
        }
        self.last = Mark::of(line);
        self.holders.line(line);
        self.is_timed |= line.verb == "run" && !self.is_timed && line.key("waited").is_some();
        let makes = ["spawn", "run", "block", "await", "wake", "deliver", "trap", "io", "longrun"];
        if line.task != 0 && makes.contains(&line.verb) {
            let task = self.tasks.entry(line.task).or_insert_with(|| Living {
                id: line.task,
                name: line.name().into(),
                parent: line.number("parent").filter(|_| line.verb == "spawn"),
                site: line.key("at").filter(|_| line.verb == "spawn").map(Box::from),
                ..Living::default()
            });
            task.is_timed = self.is_timed;
            task.follow(line, is_head);
        }
        match line.verb {
            "wake" | "deliver" | "withdraw" => self.close(line),
            "trap" => self.scope(line),
            "arm" | "disarm" | "fire" => self.timer(line),
            "accept" => self.accept(line),
            "io" => self.serve(line.task, line.word(0)),
            "block" | "await" if line.word(0) == "io" => self.serve(line.task, line.word(1)),
            "exit" => return self.exit(line),
            _ => {}
        }
        if line.verb == "block" && line.task != 0 && !is_head && self.circles.len() < CIRCLES {
            let closed = stuck::closed(self, line.task);
            self.circles.extend(closed);
        }
        None
    }

    /// Ends a ticket. Another task may drop the future of a wait.
    fn close(&mut self, line: &Line<'_>) {
        let Some(ticket) = line.number("k") else { return };
        let own = self.tasks.get_mut(&line.task).is_some_and(|task| task.close(ticket));
        if !own {
            let _ = self.tasks.values_mut().any(|task| task.close(ticket));
        }
    }

    fn exit(&mut self, line: &Line<'_>) -> Option<Living> {
        let mut task = self.tasks.remove(&line.task)?;
        task.shares = task.shares_until(line.at);
        for deadline in &task.deadlines {
            self.deadlines.remove(deadline);
        }
        for wait in &task.waits {
            wait.number("k").into_iter().for_each(|ticket| self.holders.close(ticket));
        }
        Some(task)
    }

    fn scope(&mut self, line: &Line<'_>) {
        let (word, second) = (line.word(0), line.word(1));
        let Some(task) = self.tasks.get_mut(&line.task) else { return };
        let (kind, deadline) = match word {
            "unset_timeout" | "unguard" | "unshield" => {
                return task.scopes.retain(|scope| *scope.name != *second);
            }
            "connection_deadline" => (None, line.outcome().and_then(|name| number(name, 'd'))),
            "guard" => (number(second, 'd').map(Kind::Guard), number(second, 'd')),
            "shield" => (Some(Kind::Shield), None),
            "set_timeout" if line.key("until").is_some() => (Some(Kind::Limit), None),
            "set_timeout" => (Some(Kind::NoLimit), None),
            _ => return,
        };
        if let (Some(kind), Some(name)) = (kind, line.outcome()) {
            task.scopes.push(Scope { name: name.into(), kind });
        }
        if let Some(deadline) = deadline {
            self.own(deadline, line.task);
        }
    }

    /// Returns a connection deadline. An unknown one belongs to this task.
    fn own(&mut self, number: u64, owner: u64) -> &mut Deadline {
        self.deadlines.entry(number).or_insert_with(|| {
            let task = self.tasks.get_mut(&owner);
            task.into_iter().for_each(|task| task.deadlines.push(number));
            Deadline { owner, ..Deadline::default() }
        })
    }

    fn timer(&mut self, line: &Line<'_>) {
        let Some(timer) = number(line.word(0), 'd') else { return };
        if line.verb == "arm" {
            let deadline = self.own(timer, line.task);
            deadline.is_armed = true;
            // Another task can only bring it forward.
            if deadline.owner == line.task || line.key("phase").is_some() {
                deadline.phase = line.key("phase").map(Box::from);
            }
        } else if let Some(deadline) = self.deadlines.get_mut(&timer) {
            (deadline.is_armed, deadline.phase) = (false, None);
        }
    }

    fn accept(&mut self, line: &Line<'_>) {
        let connection = number(line.word(2), 'c');
        if let (Some(connection), Some(peer)) = (connection, line.key("peer")) {
            self.peers.insert(connection, peer.into());
            if self.peers.len() > UNUSED {
                self.peers.pop_first();
            }
        }
    }

    /// Notes that a task uses a descriptor.
    fn serve(&mut self, task: u64, alias: &str) {
        if self.peers.is_empty() {
            return;
        }
        let peer = number(alias, 'c').and_then(|connection| self.peers.remove(&connection));
        if let (Some(peer), Some(task)) = (peer, self.tasks.get_mut(&task)) {
            task.peer = Some((alias.into(), peer));
        }
    }

    /// Returns the phase of the connection that a task serves, which is that of its armed deadline.
    pub fn phase(&self, task: &Living) -> Option<&str> {
        let mut own = task.deadlines.iter().filter_map(|number| self.deadlines.get(number));
        own.find_map(|deadline| deadline.phase.as_deref())
    }

    /// Returns the name of a live task.
    pub fn name(&self, id: u64) -> Option<&str> {
        self.tasks.get(&id).map(|task| &*task.name)
    }

    /// Describes everything that a task waits for.
    pub fn waits_in_words(&self, task: &Living, of: Of) -> String {
        self.holders.waits_in_words(task, of, &|id| self.name(id))
    }

    /// Describes the phase of a task, if it has one, its wait, and the last notification.
    pub fn wait_in_words(&self, task: &Living, of: Of) -> String {
        let words = self.waits_in_words(task, of) + &self.holders.notified_in_words(task);
        match self.phase(task) {
            Some(phase) => format!("{phase}: {words}"),
            None => words,
        }
    }

    /// Describes the state of a task in a word or two.
    pub fn state_in_words(&self, task: &Living) -> String {
        let state = match task.state {
            Some(State::Blocked) => {
                let words = task.open_waits().into_iter().map(|wait| match wait.word(0) {
                    "queue_get" | "queue_put" => wait.op().to_owned(),
                    _ if is_primitive(wait) => {
                        self.holders.in_words(wait, Of::Now, &|id| self.name(id))
                    }
                    word => word.to_owned(),
                });
                format!("in {}", words.take(SHOWN).collect::<Vec<_>>().join(" or "))
            }
            Some(State::Ready) => "ready".to_owned(),
            _ => "running".to_owned(),
        };
        match self.phase(task) {
            Some(phase) => format!("{state} ({phase})"),
            None => state,
        }
    }

    /// Whether a deadline that no shield holds back is open around a task.
    pub fn is_limited(&self, task: &Living) -> bool {
        let inside = task.scopes.iter().rev().map(|scope| scope.kind);
        inside.take_while(|kind| *kind != Kind::Shield).any(|kind| match kind {
            Kind::Guard(number) => self.deadlines.get(&number).is_some_and(|it| it.is_armed),
            kind => kind == Kind::Limit,
        })
    }
}
