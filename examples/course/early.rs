//! The logs of the first five steps, translated into the words of the real kernel.
//!
//! These kernels write a line for each decision, but few words in it: no numbers of lines, no
//! names, no causes. In the first three steps they do not show what a task waits for, or when the
//! wait is over. All of that follows from the log as a whole. In step 1 each task that leaves the
//! CPU has called its own waker; in steps 2 and 3 it sleeps until its next run.
//!
//! ```text
//!  0.000000    1   2 block      block    sleep 0.1s until=0.100000 k=2
//!  0.100000    2   0 fire       fire     k=2 deadline=0.100000 cause=#0007
//!                               wake     sleep k=2 cause=#0010
//!  0.100000    2   2 run        run      cause=#0011 parked=0.1s k=2 = ok
//! ```

use std::collections::BTreeMap;
use std::fmt::Write as _;

use kernel::trace::Span;
use traps::Time;

/// A line of such a log.
pub struct Early<'t> {
    at: Time,
    turn: u64,
    pub task: u64,
    pub verb: &'t str,
    pub detail: &'t str,
}

impl Early<'_> {
    /// Reads a line. Returns `None` if the program printed it.
    pub fn read(text: &str) -> Option<Early<'_>> {
        let mut rest = text.trim_start();
        let mut word = || {
            let (word, others) = rest.split_once(' ').unwrap_or((rest, ""));
            rest = others.trim_start();
            word
        };
        let first = word();
        // Step 1 has no clock; the page of step 2 hides what differs from run to run.
        let (at, turn) = match first.contains('.') {
            true => (first.replace('*', "0").parse().ok()?, word()),
            false => (Time::ZERO, first),
        };
        let (turn, task, verb) = (turn.parse().ok()?, word().parse().ok()?, word());
        let verbs = ["spawn", "run", "trap", "block", "wake", "fire", "join", "exit"];
        verbs.contains(&verb).then_some(Early { at, turn, task, verb, detail: rest })
    }
}

/// A task of such a log.
#[derive(Default)]
struct Task {
    name: String,
    /// The line that made the task ready, or its last `run`.
    cause: u64,
    /// Its wait: the ticket, the operation, the `block` line and its time.
    wait: Option<(u64, String, u64, Time)>,
}

#[derive(Default)]
struct Teller {
    text: String,
    seq: u64,
    tickets: u64,
    tasks: BTreeMap<u64, Task>,
    /// The last `fire`, `exit` or `block` line, which is the cause of a wake.
    last: u64,
}

impl Teller {
    fn write(&mut self, line: &Early<'_>, verb: &str, detail: &str) -> u64 {
        self.seq += 1;
        let name = match line.task {
            0 => "kernel",
            task => self.tasks.get(&task).map_or("task", |task| &task.name),
        };
        let (at, turn, seq, task) = (line.at.to_string(), line.turn, self.seq, line.task);
        let _ = writeln!(
            self.text,
            "{at:>9} {turn:>7}  #{seq:04} {task:>3} {name:<8} {verb:<8} {detail}"
        );
        self.seq
    }

    fn spawn(&mut self, line: &Early<'_>) {
        let mut words = line.detail.split(' ').filter(|word| !word.is_empty());
        let name = words.next().unwrap_or("task").to_owned();
        let parent = words.next().unwrap_or("parent=-");
        self.tasks.insert(line.task, Task { name, ..Task::default() });
        let cause = self.write(line, "spawn", parent);
        self.task(line.task).cause = cause;
    }

    fn task(&mut self, id: u64) -> &mut Task {
        self.tasks.entry(id).or_default()
    }

    fn run(&mut self, line: &Early<'_>) {
        let task = self.task(line.task);
        let (mut detail, wait) = (format!("cause=#{:04}", task.cause), task.wait.take());
        if let Some((ticket, _, _, since)) = wait {
            let _ = write!(detail, " parked={} k={ticket} = ok", Span(line.at.since(since)));
        }
        let cause = self.write(line, "run", &detail);
        self.task(line.task).cause = cause;
    }

    fn block(&mut self, line: &Early<'_>, op: &str) {
        self.tickets += 1;
        let ticket = self.tickets;
        self.last = self.write(line, "block", &format!("{op} k={ticket}"));
        // A wake names the trap and its object.
        let count = if op.starts_with("join") { 2 } else { 1 };
        let what = op.split(' ').take(count).collect::<Vec<_>>().join(" ");
        let last = self.last;
        self.task(line.task).wait = Some((ticket, what, last, line.at));
    }

    /// Fires the timer of that task.
    fn fire(&mut self, line: &Early<'_>, task: u64) {
        let wait = self.task(task).wait.as_ref();
        let (ticket, block) = wait.map_or((0, 0), |(ticket, _, block, _)| (*ticket, *block));
        let detail = format!("k={ticket} deadline={} cause=#{block:04}", line.at);
        self.last = self.write(line, "fire", &detail);
    }

    fn wake(&mut self, line: &Early<'_>, task: u64) {
        let last = self.last;
        let wait = self.task(task).wait.as_ref();
        let (ticket, what) = wait.map_or((0, "waker"), |(ticket, what, ..)| (*ticket, what));
        let detail = format!("{what} k={ticket} cause=#{last:04}");
        let cause = self.write(&Early { task, ..*line }, "wake", &detail);
        self.task(task).cause = cause;
    }
}

/// Translates a log, without its header. Also returns the number of the event after each of its
/// lines.
pub fn told(log: &str) -> (String, Vec<u64>) {
    let lines: Vec<Early<'_>> = log.lines().filter_map(Early::read).collect();
    // From step 4 on a line says that a wait is over.
    let says_wakes = lines.iter().any(|line| line.verb == "wake");
    let has_clock = lines.iter().any(|line| line.at != Time::ZERO);
    let mut teller = Teller::default();
    let mut events = Vec::new();
    for (nth, line) in lines.iter().enumerate() {
        let later = &lines[nth + 1..];
        // Timers and the tasks that they wake are in the same order.
        let earlier = lines[..nth].iter().filter(|it| it.turn == line.turn && it.verb == "fire");
        let word = if says_wakes { "wake" } else { "run" };
        let woken = later.iter().filter(|it| it.turn == line.turn && it.verb == word);
        let nth_timer = if says_wakes { 0 } else { earlier.count() };
        let woken = woken.map(|it| it.task).nth(nth_timer).unwrap_or_default();
        match line.verb {
            "spawn" => teller.spawn(line),
            "run" => teller.run(line),
            "block" if says_wakes => teller.block(line, line.detail),
            "block" if has_clock => {
                let until = later.iter().find(|it| it.task == line.task).map(|it| it.at);
                let until = until.unwrap_or(line.at);
                let span = Span(until.since(line.at));
                teller.block(line, &format!("sleep {span} until={until}"));
            }
            "block" => {
                teller.block(line, "yield");
                teller.wake(line, line.task);
            }
            "fire" => {
                teller.fire(line, woken);
                if !says_wakes {
                    teller.wake(line, woken);
                }
            }
            "wake" => teller.wake(line, line.task),
            "exit" => {
                let how = if line.detail.is_empty() { "ok" } else { line.detail };
                let detail = format!("{how} cause=#{:04}", teller.task(line.task).cause);
                teller.last = teller.write(line, "exit", &detail);
            }
            verb => drop(teller.write(line, verb, line.detail)),
        }
        events.push(teller.seq);
    }
    // These kernels print nothing when they halt. Without the line, a log is cut off.
    if let Some(last) = lines.last() {
        let left = "tasks=0 tickets=0 timers=0 handles=0";
        teller.write(&Early { task: 0, ..*last }, "halt", left);
    }
    (teller.text, events)
}
