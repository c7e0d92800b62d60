//! Given: a run, its log as lines, and questions about them.

use std::cell::RefCell;
use std::io::{self, Write};
use std::pin::Pin;
use std::rc::Rc;

use super::kernel::{Kernel, Sim, note, sleep, spawn};
use super::scenario;

/// The part of a log line that a question needs.
#[allow(dead_code)]
pub struct Line {
    pub seq: u64,
    pub task: u32,
    pub verb: String,
    pub cause: Option<u64>,
    /// The task that spawned this one, for a `spawn`.
    pub parent: Option<u32>,
}

#[derive(Clone, Default)]
struct Text(Rc<RefCell<Vec<u8>>>);

impl Write for Text {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().write(bytes)
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn parse(line: &str) -> Option<Line> {
    let words: Vec<&str> = line.split_whitespace().collect();
    let value = |key: &str| words.iter().find_map(|word| word.strip_prefix(key));
    Some(Line {
        seq: words.get(2)?.strip_prefix('#')?.parse().ok()?,
        task: words.get(3)?.parse().ok()?,
        verb: (*words.get(5)?).to_owned(),
        cause: value("cause=#").and_then(|number| number.parse().ok()),
        parent: value("parent=").and_then(|number| number.parse().ok()),
    })
}

/// Spawns the children, sleeps for its time or else joins a child, spawns the late child, and joins
/// the other children in reverse order.
fn work(job: scenario::Job) -> Pin<Box<dyn Future<Output = ()>>> {
    Box::pin(async move {
        let mut tasks = Vec::new();
        for child in job.children {
            tasks.push(spawn(child.name, work(child)).await);
        }
        if !job.takes.is_zero() {
            sleep(job.takes).await;
        } else if job.late.is_some()
            && let Some(mut task) = tasks.pop()
        {
            task.join().await;
        }
        if let Some(child) = job.late {
            tasks.push(spawn(child.name, work(*child)).await);
        }
        while let Some(mut task) = tasks.pop() {
            task.join().await;
        }
        note(job.name);
    })
}

pub fn main(seed: u64) {
    let text = Text::default();
    let mut kernel = Kernel::new(Sim::new());
    kernel.trace_to(text.clone());
    let ran = kernel.run(work(scenario::of(seed)));
    let log = String::from_utf8_lossy(&text.0.borrow()).into_owned();
    print!("{log}");
    if let Err(error) = ran {
        println!("# {error}");
    }
    let lines: Vec<Line> = log.lines().filter_map(parse).collect();
    for seq in asked(&lines, seed) {
        let chain = super::lab::why(&lines, seq);
        let chain: Vec<String> = chain.iter().map(u64::to_string).collect();
        println!("# why {seq}: {}", chain.join(" "));
    }
}

/// The lines that are asked about.
fn asked(lines: &[Line], seed: u64) -> Vec<u64> {
    let last = |verb: &str, task| {
        let mut found = lines.iter().filter(|line| line.verb == verb && line.task == task);
        found.next_back().map_or(0, |line| line.seq)
    };
    match seed {
        // Why was there tea, why did main wait for the water, and why was there a cup at all?
        0 => vec![last("note", 1), last("block", 1), last("spawn", 3)],
        // All lines of tasks, and what the time did.
        _ => {
            let is_asked = |line: &&Line| line.task != 0 || line.verb == "fire";
            lines.iter().filter(is_asked).map(|line| line.seq).collect()
        }
    }
}
