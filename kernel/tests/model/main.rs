//! Random programs over all primitives and channels, with timeouts, races and cancellations. Each
//! is compared with a naive model of the results and their times.
//!
//! This is a binary of its own, so that the gate can run it optimized, with many more programs and
//! without the other tests.

mod world;

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::rc::Rc;

use kernel::{Options, Policy, RunError, Sim};
use support::kernels::{Traced, tenths};
use traps::internal::panic_message;
use traps::{spawn, timeout_after};
use world::program::Program;
use world::{Watched, World, check_end, script};

/// The result of a program.
struct Life {
    trace: String,
    log: Vec<String>,
    wrong: Option<String>,
    hangs: bool,
}

/// Runs a program: its tasks to their ends or until main gives up. Then cancels the remaining tasks
/// and checks the state that they leave.
fn life(program: &Program, logs: bool) -> Life {
    let machine = Sim::new();
    let world = Rc::new(World::new(program, machine.clock(), logs));
    let policy = [Policy::Lazy, Policy::Eager, Policy::NextSleep][program.policy];
    let mut kernel = Traced::new(machine, Options::new().policy(policy));
    let lived = catch_unwind(AssertUnwindSafe(|| {
        let ended = kernel.run(first_part(world.clone(), program));
        let hangs = matches!(ended, Err(RunError::Hang(_)));
        let now = world.clock.now();
        let mut model = world.model.borrow_mut();
        model.advance(now);
        match ended {
            Ok(()) => {}
            Err(RunError::Hang(_)) => model.check_hang(),
            Err(error) => model.is_wrong(|| error.to_string()),
        }
        drop(model);
        if let Err(error) = kernel.run(last_part(world.clone())) {
            world.model.borrow_mut().is_wrong(|| format!("in the last part: {error}"));
        }
        hangs
    }));
    let mut model = world.model.borrow_mut();
    let (wrong, log) = (model.wrong.take(), model.log.take().unwrap_or_default());
    drop(model);
    let hangs = *lived.as_ref().unwrap_or(&false);
    let wrong = wrong.or_else(|| Some(panic_message(&*lived.err()?).to_owned()));
    if wrong.is_some() {
        return Life { trace: kernel.drop_live(), log, wrong, hangs };
    }
    let alive = world.alive.clone();
    drop(world);
    match catch_unwind(AssertUnwindSafe(|| kernel.end())) {
        Ok(trace) => {
            let left = (alive.get() != 0).then(|| format!("{} items are left", alive.get()));
            Life { trace, log, wrong: left, hangs }
        }
        Err(panic) => {
            let wrong = Some(panic_message(&*panic).to_owned());
            Life { trace: String::new(), log, wrong, hangs }
        }
    }
}

async fn first_part(w: Rc<World>, program: &Program) {
    for (task, steps) in program.tasks.iter().enumerate() {
        let body = Box::pin(script(w.clone(), task, steps.clone()));
        let task = spawn("task", Watched { world: w.clone(), task, body }).await;
        w.tasks.borrow_mut().push(Rc::new(task));
    }
    let span = program.patience.map(tenths);
    let _ = timeout_after(span, all_ended(&w)).await;
}

async fn all_ended(w: &World) -> Result<(), traps::Interrupt> {
    let tasks = w.tasks.borrow().clone();
    for task in tasks {
        task.wait().await?;
    }
    Ok(())
}

async fn last_part(w: Rc<World>) {
    (0..w.tasks.borrow().len()).for_each(|task| w.cancel(task));
    let _ = all_ended(&w).await;
    let now = w.clock.now();
    w.model.borrow_mut().advance(now);
    check_end(&w).await;
    w.tasks.take();
}

/// Returns the seeds of a test's random programs; `MODEL_SEEDS=100000` asks for more, and
/// `MODEL_SEEDS=FROM..TO` for these seeds.
fn seeds(usual: u64) -> std::ops::Range<u64> {
    let asked = std::env::var("MODEL_SEEDS").ok();
    let number = |text: &str| text.parse().expect("MODEL_SEEDS is a number, or FROM..TO");
    match asked.as_deref().map(|asked| asked.split_once("..").unwrap_or(("0", asked))) {
        Some((from, to)) => number(from)..number(to),
        None => 0..usual,
    }
}

/// Returns the smallest failing program that has only steps of `program`.
fn smallest(mut program: Program) -> Program {
    loop {
        let smaller = program.smaller();
        match smaller.into_iter().find(|less| life(less, false).wrong.is_some()) {
            Some(less) => program = less,
            None => return program,
        }
    }
}

#[test]
fn whatever_a_program_does_each_task_gets_the_results_of_the_model() {
    let (mut hangs, mut count) = (0, 0);
    for seed in seeds(800) {
        let program = Program::drawn(seed);
        let first = life(&program, false);
        if first.wrong.is_some() {
            let small = smallest(program.clone());
            let Life { trace, log, wrong, .. } = life(&small, true);
            panic!(
                "seed {seed}: {}\n{program}\nthe smallest such program: {}\n{small}\n{}\n\n{trace}",
                first.wrong.unwrap_or_default(),
                wrong.unwrap_or_default(),
                log.join("\n"),
            );
        }
        if seed % 16 == 0 {
            assert!(life(&program, false).trace == first.trace, "seed {seed}: another trace");
        }
        hangs += u64::from(first.hangs);
        count += 1;
    }
    assert!(count < 100 || hangs > 0 && hangs < count / 2, "{hangs} of {count} programs hang");
}
