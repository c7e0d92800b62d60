//! What the tasks of a program share: its locks, channels, bells and variables, and the list of
//! its tasks.

use std::cell::{Cell, Ref, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::time::Duration;

use traps::channel::queue::FifoQueue;
use traps::sync::Mutex;
use traps::{Task, WaitQueue, note};

use super::Problem;
use super::frame::Variables;
use super::program::Program;

/// The largest number of statements that a program runs. So every program ends, and ends at the
/// same statement on every machine.
pub const STATEMENTS: u64 = 10_000;
/// The largest number of problems that a run reports.
const PROBLEMS: usize = 20;

/// What the tasks of a program share.
pub struct World {
    /// The value of a lock is its name.
    pub locks: BTreeMap<String, Mutex<String>>,
    /// The channels of the program.
    pub channels: BTreeMap<String, FifoQueue<i64>>,
    /// A queue of tasks for each `wait` and `wake`. It keeps nothing of a wake.
    pub bells: BTreeMap<String, WaitQueue>,
    /// The variables that are `shared`.
    pub shared: RefCell<Variables>,
    /// Uses the CPU for this time.
    pub spin: Box<dyn Fn(Duration)>,
    /// The handles of all tasks of a name, oldest first. They are kept to the end, because the
    /// drop of a handle that was never used is a warning in the log.
    tasks: RefCell<BTreeMap<String, Vec<Task<()>>>>,
    /// How many statements have run.
    statements: Cell<u64>,
    /// See [`World::record_site`].
    sites: RefCell<Vec<usize>>,
    problems: RefCell<Vec<Problem>>,
}

impl World {
    /// Makes all that the statements of a program name, so `locks[name]` is there for each `lock`.
    pub fn new(program: &Program, spin: impl Fn(Duration) + 'static) -> World {
        let lock = |name: &String| (name.clone(), Mutex::named(name.clone(), name.clone()));
        let channel =
            |(name, room): (&String, &usize)| (name.clone(), FifoQueue::named(name.clone(), *room));
        let bell = |name: &String| (name.clone(), WaitQueue::new().described("bell", name.clone()));
        World {
            locks: program.locks.iter().map(lock).collect(),
            channels: program.channels.iter().map(channel).collect(),
            bells: program.bells.iter().map(bell).collect(),
            shared: RefCell::new(program.shared.clone()),
            spin: Box::new(spin),
            tasks: RefCell::default(),
            statements: Cell::new(0),
            sites: RefCell::default(),
            problems: RefCell::default(),
        }
    }

    /// Keeps the handle of a new task.
    pub fn keep(&self, name: &str, task: Task<()>) {
        self.tasks.borrow_mut().entry(name.to_owned()).or_default().push(task);
    }

    /// Returns the newest task of this name.
    pub fn task(&self, name: &str) -> Result<Ref<'_, Task<()>>, String> {
        let newest = Ref::filter_map(self.tasks.borrow(), |tasks| tasks.get(name)?.last());
        newest.map_err(|_| format!("there is no task {name} yet"))
    }

    /// Counts one more statement.
    pub fn count(&self, line: usize) -> io::Result<()> {
        self.statements.update(|count| count + 1);
        if self.statements.get() <= STATEMENTS {
            return Ok(());
        }
        let text = format!("the program has run {STATEMENTS} statements, and no more are run");
        // Only once: the other tasks end for the same reason.
        if self.statements.get() == STATEMENTS + 1 {
            return Err(self.problem(line, text));
        }
        Err(io::Error::other(text))
    }

    /// Records the line of a statement that writes a `note` or `notify` line into the log. These
    /// lines have no `at=`. They come in the order in which tasks ask for them, so the list of
    /// what was recorded is enough to find the line of the program for each.
    pub fn record_site(&self, line: usize) {
        self.sites.borrow_mut().push(line);
    }

    /// Reports what is wrong with a statement. Returns the error that ends its task.
    pub fn problem(&self, line: usize, text: String) -> io::Error {
        let mut problems = self.problems.borrow_mut();
        let is_new = problems.iter().all(|problem| problem.line != line);
        if is_new && problems.len() < PROBLEMS {
            self.record_site(line);
            note(format_args!("line {line}: {text}"));
            problems.push(Problem { line, text: text.clone() });
        }
        io::Error::other(text)
    }

    /// Takes the problems and the recorded sites.
    pub fn take(&self) -> (Vec<Problem>, Vec<usize>) {
        (self.problems.take(), self.sites.take())
    }
}
