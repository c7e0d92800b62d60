//! A million sleeping tasks: the memory of each, and the time to start them.
//!
//! In a separate process each time, because memory that one runtime has touched stays in the
//! process.

use std::sync::atomic::{AtomicU64, Ordering::Relaxed};
use std::time::Duration;

use super::{Case, Cpu, OURS, Runner, on};
use crate::report::Bar;
use crate::tied;

const SECTION: &str = "memory";
const MILLION: u64 = 1_000_000;

pub fn cases() -> Vec<Case> {
    let case = |name, figure, unit, bars, runners, limits| {
        let (section, load, count) = (SECTION, MILLION, 1);
        Case { section, name, figure, unit, load, count, bars, runners, limits }
    };
    let parts = "the task, its wait, its timer, and how its tables grow";
    let millis = &[Bar::AtMost(150.0)];
    vec![
        case("sleeping", "1,000,000 sleeping tasks, RSS of each", "bytes", &[], BYTES, parts),
        case(
            "starting",
            "1,000,000 sleeping tasks, to start them",
            "ms",
            millis,
            MILLIS,
            "the pages that the system gives, one fault each",
        ),
    ]
}

const BYTES: &[(&str, Runner)] = &[
    (OURS, |tasks, _| ask(OURS, tasks).bytes),
    ("tokio", |tasks, _| ask("tokio", tasks).bytes),
    ("smol", |tasks, _| ask("smol", tasks).bytes),
    ("monoio", |tasks, _| ask("monoio", tasks).bytes),
];

const MILLIS: &[(&str, Runner)] = &[
    (OURS, |tasks, _| ask(OURS, tasks).millis),
    ("tokio", |tasks, _| ask("tokio", tasks).millis),
    ("smol", |tasks, _| ask("smol", tasks).millis),
    ("monoio", |tasks, _| ask("monoio", tasks).millis),
];

/// The result of a process.
struct Found {
    bytes: f64,
    millis: f64,
}

/// Measures in a new process. One that fails has no figure: a million tasks of some take more
/// memory than there is everywhere.
fn ask(peer: &str, tasks: u64) -> Found {
    let this = std::env::current_exe().expect("the system knows this program");
    let mut command = tied::command(this).expect("the system knows this program");
    let output = command.args(["micro", "figure", peer, &tasks.to_string()]).output();
    let output = output.expect("this program can be started");
    let text = String::from_utf8_lossy(&output.stdout);
    let mut figures = text.split_whitespace().map_while(|word| word.parse().ok());
    let [Some(bytes), Some(millis)] = [figures.next(), figures.next()] else {
        let why = String::from_utf8_lossy(&output.stderr);
        crate::out::note(format!("  {peer} with {tasks} tasks left out: {} {why}", output.status));
        return Found { bytes: f64::NAN, millis: f64::NAN };
    };
    Found { bytes, millis }
}

/// How many tasks have begun.
static BEGUN: AtomicU64 = AtomicU64::new(0);

fn begin() {
    BEGUN.store(BEGUN.load(Relaxed) + 1, Relaxed);
}

fn all_have_begun(tasks: u64) -> bool {
    BEGUN.load(Relaxed) == tasks
}

const HOUR: Duration = Duration::from_secs(3600);

/// `PEER TASKS`: prints the bytes of each task, and the milliseconds of this thread that it took to
/// start all.
pub fn figure(words: &[&str]) -> Result<(), String> {
    let [peer, tasks] = words else {
        return Err("expected PEER TASKS".to_owned());
    };
    let tasks: u64 = tasks.parse().map_err(|_| format!("expected a number, not `{tasks}`"))?;
    match *peer {
        OURS => on::trapline(ours(tasks)),
        "tokio" => on::tokio(tokio(tasks)),
        "smol" => on::smol(|executor| smol(executor, tasks)),
        "monoio" => on::monoio(monoio(tasks)),
        other => Err(format!("no peer `{other}`")),
    }
}

async fn ours(tasks: u64) -> Result<(), String> {
    let before = Before::now();
    for _ in 0..tasks {
        let sleeps = async {
            begin();
            traps::sleep(HOUR).await
        };
        traps::spawn("sleeps", sleeps).detached().await;
    }
    while !all_have_begun(tasks) {
        traps::yield_now().await.expect("nothing interrupts it");
    }
    before.tell(tasks)
}

async fn tokio(tasks: u64) -> Result<(), String> {
    let before = Before::now();
    for _ in 0..tasks {
        drop(tokio::spawn(async {
            begin();
            tokio::time::sleep(HOUR).await;
        }));
    }
    while !all_have_begun(tasks) {
        tokio::task::yield_now().await;
    }
    before.tell(tasks)
}

async fn smol(
    executor: std::rc::Rc<async_executor::LocalExecutor<'static>>,
    tasks: u64,
) -> Result<(), String> {
    let before = Before::now();
    for _ in 0..tasks {
        let sleeps = async {
            begin();
            async_io::Timer::after(HOUR).await;
        };
        executor.spawn(sleeps).detach();
    }
    while !all_have_begun(tasks) {
        futures_lite::future::yield_now().await;
    }
    before.tell(tasks)
}

async fn monoio(tasks: u64) -> Result<(), String> {
    let before = Before::now();
    for _ in 0..tasks {
        drop(monoio::spawn(async {
            begin();
            monoio::time::sleep(HOUR).await;
        }));
    }
    while !all_have_begun(tasks) {
        // There a task that wakes itself runs next, so a yield lets no other task run.
        monoio::time::sleep(Duration::from_millis(1)).await;
    }
    before.tell(tasks)
}

/// The process before the tasks were made.
struct Before {
    bytes: u64,
    start: Cpu,
}

impl Before {
    fn now() -> Before {
        Before { bytes: resident(), start: Cpu::now() }
    }

    /// Prints the growth since then, and ends the process without dropping its tasks.
    fn tell(&self, tasks: u64) -> ! {
        let millis = self.start.elapsed().as_secs_f64() * 1e3;
        let bytes = resident().saturating_sub(self.bytes) as f64 / tasks.max(1) as f64;
        let said = crate::out::say(&format!("{bytes:.1} {millis:.1}\n"));
        std::process::exit(i32::from(said.is_err()));
    }
}

/// The resident bytes of this process.
fn resident() -> u64 {
    let text = std::fs::read_to_string("/proc/self/statm").expect("Linux has it");
    let pages: u64 = text.split(' ').nth(1).and_then(|word| word.parse().ok()).unwrap_or(0);
    pages * 4096
}
