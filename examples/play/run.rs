//! Runs a program. Each statement that traps is one call of [`traps`], in [`begin`].

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::io;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::time::{Duration, Instant};

use kernel::{Kernel, Machine, Sim, SimClock};
use traps::channel::queue::FifoQueue as Queue;
use traps::internal::liberty::{self, Liberty};
use traps::sync::{Mutex, MutexGuard};
use traps::{Interrupt, Interruptible, Task, WaitQueue};
use traps::{clock, ignore_after, note, shield, sleep, spawn, yield_now};

use super::Problem;
use super::program::{Block, LINES, Program, Statement, Term, Test, Value, What};

const MS: Duration = Duration::from_millis(1);
/// A program does so many statements at most.
pub const MOST: u64 = 10_000;

/// What a run leaves.
#[derive(Debug, Default)]
pub struct Ran {
    /// The log; the sites in it are lines of `program`.
    pub log: String,
    /// What went wrong, and in which lines of the program.
    pub problems: Vec<Problem>,
    /// The kernel's report, if the tasks waited for ever.
    pub report: Option<String>,
}

/// Why a task ends before its end.
#[derive(Debug)]
enum Stop {
    Interrupt(Interrupt),
    /// It is among the problems.
    Problem,
}

impl From<Interrupt> for Stop {
    fn from(interrupt: Interrupt) -> Stop {
        Stop::Interrupt(interrupt)
    }
}

impl Interruptible for Stop {
    fn interrupt(&self) -> Option<&Interrupt> {
        if let Stop::Interrupt(interrupt) = self { Some(interrupt) } else { None }
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        if let Stop::Interrupt(interrupt) = self { Some(interrupt) } else { None }
    }
}

/// What the tasks of a program share. It is there until the process ends, so that a guard may
/// borrow its lock.
struct World {
    locks: BTreeMap<String, Mutex<()>>,
    channels: BTreeMap<String, Queue<i64>>,
    bells: BTreeMap<String, WaitQueue>,
    shared: RefCell<BTreeMap<String, i64>>,
    tasks: RefCell<BTreeMap<String, &'static Task<()>>>,
    /// The virtual clock; on a real one `spin` is a loop.
    clock: Option<SimClock>,
    steps: Cell<u64>,
    problems: RefCell<Vec<Problem>>,
}

impl World {
    fn of(program: &Program, clock: Option<SimClock>) -> World {
        let mut world = World {
            locks: BTreeMap::new(),
            channels: BTreeMap::new(),
            bells: BTreeMap::new(),
            shared: RefCell::new(program.shared.iter().cloned().collect()),
            tasks: RefCell::default(),
            clock,
            steps: Cell::new(0),
            problems: RefCell::default(),
        };
        for (name, room) in &program.channels {
            world.channels.insert(name.clone(), Queue::named(name.clone(), *room));
        }
        world.name(&program.tasks);
        world
    }

    /// Makes what the statements name.
    fn name(&mut self, block: &Block) {
        for Statement { what, .. } in block {
            match what {
                What::Lock(name) => {
                    let lock = || Mutex::named(name.clone(), ());
                    self.locks.entry(name.clone()).or_insert_with(lock);
                }
                What::Send(name, _) | What::Recv(name, _) => {
                    let channel = || Queue::named(name.clone(), 1);
                    self.channels.entry(name.clone()).or_insert_with(channel);
                }
                What::Wait(name) | What::Wake(name) => {
                    let bell = || WaitQueue::new().described("bell", name.clone());
                    self.bells.entry(name.clone()).or_insert_with(bell);
                }
                What::Spawn(_, body)
                | What::Shield(body)
                | What::Repeat(_, body)
                | What::While(_, body) => self.name(body),
                What::Within(_, one, two) | What::Try(one, two) | What::If(_, one, two) => {
                    self.name(one);
                    self.name(two);
                }
                _ => {}
            }
        }
    }

    fn problem(&self, line: usize, text: String) -> Stop {
        let mut problems = self.problems.borrow_mut();
        if problems.iter().all(|problem| problem.line != line) && problems.len() < 20 {
            note(format_args!("line {line}: {text}"));
            problems.push(Problem { line, text });
        }
        Stop::Problem
    }

    /// One more statement.
    fn step(&self, line: usize) -> Result<(), Stop> {
        self.steps.set(self.steps.get() + 1);
        match self.steps.get() {
            ..=MOST => Ok(()),
            over if over == MOST + 1 => Err(self
                .problem(line, format!("the program has done {MOST} statements; no more are run"))),
            _ => Err(Stop::Problem),
        }
    }

    fn spin(&self, span: Duration) {
        match &self.clock {
            Some(clock) => clock.advance(span),
            None => {
                let start = Instant::now();
                while start.elapsed() < span {}
            }
        }
    }
}

/// What a task has for itself.
struct Own {
    world: &'static World,
    name: String,
    variables: RefCell<BTreeMap<String, i64>>,
    held: RefCell<Vec<(&'static str, MutexGuard<'static, ()>)>>,
}

impl Own {
    fn new(world: &'static World, name: &str, variables: BTreeMap<String, i64>) -> Rc<Own> {
        let (variables, held) = (RefCell::new(variables), RefCell::default());
        Rc::new(Own { world, name: name.to_owned(), variables, held })
    }

    fn variable(&self, name: &str) -> i64 {
        let own = self.variables.borrow().get(name).copied();
        own.or_else(|| self.world.shared.borrow().get(name).copied()).unwrap_or_default()
    }

    fn set(&self, name: &str, value: i64) {
        match self.world.shared.borrow_mut().get_mut(name) {
            Some(shared) => *shared = value,
            None => drop(self.variables.borrow_mut().insert(name.to_owned(), value)),
        }
    }

    fn value(&self, Value(terms): &Value) -> i64 {
        terms.iter().fold(0, |sum, (sign, term)| {
            let term = match term {
                Term::Number(number) => *number,
                Term::Variable(name) => self.variable(name),
            };
            match sign {
                '+' => sum.saturating_add(term),
                '-' => sum.saturating_sub(term),
                _ => sum.saturating_mul(term),
            }
        })
    }

    fn span(&self, value: &Value) -> Duration {
        Duration::from_millis(self.value(value).clamp(0, 1_000_000_000) as u64)
    }

    fn is(&self, Test(left, sign, right): &Test) -> bool {
        let (left, right) = (self.value(left), self.value(right));
        match *sign {
            "!=" => left != right,
            "<=" => left <= right,
            ">=" => left >= right,
            "<" => left < right,
            ">" => left > right,
            _ => left == right,
        }
    }

    /// A text with the variables in it.
    fn filled(&self, text: &str) -> String {
        let mut filled = String::new();
        let mut rest = text;
        while let Some((before, (name, after))) =
            rest.split_once('{').and_then(|(before, rest)| Some((before, rest.split_once('}')?)))
        {
            filled += &format!("{before}{}", self.variable(name));
            rest = after;
        }
        filled + rest
    }

    fn unlock(&self, name: &str, line: usize) -> Result<(), Stop> {
        let mut held = self.held.borrow_mut();
        match held.iter().rposition(|(other, _)| *other == name) {
            Some(place) => {
                drop(held.remove(place));
                Ok(())
            }
            None => Err(self.world.problem(line, format!("{} does not hold {name}", self.name))),
        }
    }
}

type Step = Pin<Box<dyn Future<Output = Result<(), Stop>>>>;

/// Begins a statement that traps. The log names the line that calls this.
#[track_caller]
fn begin(what: &'static What, me: &Rc<Own>) -> Step {
    let (world, own) = (me.world, me.clone());
    match what {
        What::Sleep(span) => {
            let sleep = sleep(me.span(span));
            Box::pin(async move { Ok(sleep.await.map(drop)?) })
        }
        What::Spin(span) => {
            world.spin(me.span(span));
            // The kernel reads its clock once a turn, unless somebody asks.
            let clock = clock();
            Box::pin(async move {
                clock.await;
                Ok(())
            })
        }
        What::Yield => {
            let turn = yield_now();
            Box::pin(async move { Ok(turn.await?) })
        }
        What::Lock(name) => {
            let lock = world.locks[name].lock();
            Box::pin(async move {
                let guard = lock.await?;
                own.held.borrow_mut().push((name.as_str(), guard));
                Ok(())
            })
        }
        What::Send(name, value) => {
            let put = world.channels[name].put(me.value(value));
            Box::pin(async move {
                match put.await.map_err(|rejected| rejected.why) {
                    Ok(()) => Ok(()),
                    Err(traps::Error::Interrupt(interrupt)) => Err(interrupt.into()),
                    Err(_) => Err(Stop::Problem),
                }
            })
        }
        What::Recv(name, to) => {
            let get = world.channels[name].get();
            Box::pin(async move {
                let value = get.await?;
                match to {
                    Some(to) => own.set(to, value),
                    None => note(format_args!("{name} gave {value}")),
                }
                Ok(())
            })
        }
        What::Wait(name) => {
            let wait = world.bells[name].wait();
            Box::pin(async move { Ok(wait.await.map(drop)?) })
        }
        What::Spawn(name, body) => {
            let child = Own::new(world, name, me.variables.borrow().clone());
            let spawn = spawn(name.clone(), async move { drop(block(body, child).await) });
            Box::pin(async move {
                let task = Box::leak(Box::new(spawn.await));
                world.tasks.borrow_mut().insert(name.clone(), task);
                Ok(())
            })
        }
        What::Join(name) | What::Cancel(name) => {
            let task = world.tasks.borrow()[name];
            if let What::Join(_) = what {
                let end = task.wait();
                Box::pin(async move { Ok(end.await?) })
            } else {
                let end = task.cancel();
                Box::pin(async move { Ok(end.await?) })
            }
        }
        What::Within(span, body, late) => {
            let ended = ignore_after(me.span(span), block(body, me.clone()));
            Box::pin(async move {
                match ended.await? {
                    Some(()) => Ok(()),
                    None => block(late, own).await,
                }
            })
        }
        What::Shield(body) => Box::pin(shield(block(body, me.clone()))),
        _ => unreachable!("it does not trap"),
    }
}

/// Line N of the file stands for line N of a program: it calls [`begin`], so that is the place
/// that the log names.
static BEGIN: [fn(&'static What, &Rc<Own>) -> Step; LINES] = include!("program");
/// The name of that file in the log.
const FILE: &str = "examples/play/program:";

/// Runs the statements of a block. Locks that it has taken are released at its end.
fn block(statements: &'static Block, me: Rc<Own>) -> Step {
    Box::pin(async move {
        let held = me.held.borrow().len();
        let ended = each(statements, &me).await;
        while me.held.borrow().len() > held {
            let guard = me.held.borrow_mut().pop();
            drop(guard);
        }
        ended
    })
}

async fn each(statements: &'static Block, me: &Rc<Own>) -> Result<(), Stop> {
    for Statement { line, what } in statements {
        me.world.step(*line)?;
        match what {
            What::Unlock(name) => me.unlock(name, *line)?,
            What::Join(name) | What::Cancel(name)
                if !me.world.tasks.borrow().contains_key(name) =>
            {
                return Err(me.world.problem(*line, format!("there is no task {name} yet")));
            }
            What::Wake(name) => me.world.bells[name].wake(1),
            What::Note(text) => note(me.filled(text)),
            What::Set(name, value) => me.set(name, me.value(value)),
            What::Try(body, finally) => {
                let ended = block(body, me.clone()).await;
                block(finally, me.clone()).await?;
                ended?;
            }
            What::Repeat(count, body) => {
                let mut left = count.as_ref().map_or(i64::MAX, |count| me.value(count));
                while left > 0 {
                    block(body, me.clone()).await?;
                    left -= 1;
                }
            }
            What::While(test, body) => {
                while me.is(test) {
                    me.world.step(*line)?;
                    block(body, me.clone()).await?;
                }
            }
            What::If(test, yes, no) => {
                block(if me.is(test) { yes } else { no }, me.clone()).await?
            }
            _ => BEGIN[*line - 1](what, me).await?,
        }
    }
    Ok(())
}

/// The main task: spawns the tasks of the program, and waits for each.
async fn all(tasks: &'static Block, world: &'static World) {
    let me = Own::new(world, "main", BTreeMap::new());
    let _ = each(tasks, &me).await;
    for Statement { line, what } in tasks {
        if let What::Spawn(name, _) = what {
            let _ = BEGIN[*line - 1](Box::leak(Box::new(What::Join(name.clone()))), &me).await;
        }
    }
}

#[derive(Clone, Default)]
struct Text(Rc<RefCell<Vec<u8>>>);

impl io::Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Runs a program on the simulated machine.
#[must_use]
pub fn run(program: Program) -> Ran {
    let sim = Sim::new().seed(program.seed).late_by(program.late as u32 * MS);
    let clock = sim.clock();
    on(Kernel::new(sim), Some(clock), program)
}

/// Runs a program on a kernel.
pub fn on<M: Machine>(mut kernel: Kernel<M>, clock: Option<SimClock>, program: Program) -> Ran {
    let (seed, text) = (program.seed, Text::default());
    let world: &'static World = Box::leak(Box::new(World::of(&program, clock)));
    let program: &'static Program = Box::leak(Box::new(program));
    kernel.trace_to(text.clone());
    let site = Location::caller();
    let mut run = || {
        let ended = kernel.run_from(all(&program.tasks, world), site);
        let _ = kernel.shutdown();
        ended
    };
    let ended = if seed == 0 { run() } else { liberty::explored(order(seed), run) };
    let main = format!("{}:{}", site.file(), site.line());
    let told = |text: &str| text.replace(FILE, "program:").replace(&main, "program:1");
    let mut log = told(&String::from_utf8_lossy(&text.0.take()));
    if seed != 0 {
        // So that the checker does not expect first come, first served.
        log = log.replacen('\n', &format!("\n# explored seed={seed} liberties=order\n"), 1);
    }
    Ran {
        log,
        problems: world.problems.take(),
        report: ended.err().map(|error| told(&error.to_string())),
    }
}

/// Draws which ready task is next; every other choice is the usual one.
fn order(seed: u64) -> Rc<dyn Fn(Liberty, u64) -> u64> {
    let state = Cell::new(seed);
    Rc::new(move |liberty, most| {
        if liberty != Liberty::Order {
            return 0;
        }
        // SplitMix64.
        state.set(state.get().wrapping_add(0x9e37_79b9_7f4a_7c15));
        let mut z = state.get();
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (z ^ (z >> 31)) % (most + 1)
    })
}
