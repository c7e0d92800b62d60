//! The dining philosophers: each takes the fork on the left, then the one on the right, so none of
//! them ever eats. The kernel reports which waits for which. With `--ordered` they take the fork
//! with the lower number first, and all of them eat.

use std::process::ExitCode;
use std::rc::Rc;

use common::Lesson;
use kernel::Sim;
use traps::sync::Mutex;
use traps::{Error, spawn, yield_now};

const NAMES: [&str; 5] = ["Aristotle", "Kant", "Marx", "Russell", "Spinoza"];

async fn eat(forks: Rc<[Mutex<()>]>, first: usize, second: usize) -> Result<(), Error> {
    let _first = forks[first].lock().await?;
    yield_now().await?; // the others take their first fork meanwhile
    let _second = forks[second].lock().await?;
    Ok(())
}

pub async fn philosophers(ordered: bool) -> Result<(), Error> {
    let fork = |number| Mutex::named(format!("fork-{number}"), ());
    let forks: Rc<[_]> = (0..NAMES.len()).map(fork).collect();
    let mut table = Vec::new();
    for (left, name) in NAMES.into_iter().enumerate() {
        let right = (left + 1) % NAMES.len();
        let (first, second) =
            if ordered { (left.min(right), left.max(right)) } else { (left, right) };
        table.push(spawn(name, eat(forks.clone(), first, second)).await);
    }
    for philosopher in &mut table {
        philosopher.join().await??;
    }
    Ok(())
}

#[derive(clap::Args)]
struct Args {
    /// Take the fork with the lower number first
    #[arg(long)]
    ordered: bool,
    #[command(flatten)]
    lesson: Lesson,
}

fn main() -> ExitCode {
    let args: Args = common::parse("philosophers", "A deadlock of five tasks that names itself");
    args.lesson.ready("philosophers").run(Sim::new(), philosophers(args.ordered))
}
