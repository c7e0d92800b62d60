//! Given: a run, its log as lines, and three questions.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::Duration;

use super::kernel::{Kernel, Sim, note, sleep, spawn};

/// What a question needs of a line of the log.
#[allow(dead_code)]
pub struct Line {
    pub seq: u64,
    pub task: u32,
    pub verb: String,
    pub cause: Option<u64>,
    /// Who spawned the task, for a `spawn`.
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

async fn takes(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await;
}

async fn tea() {
    let mut water = spawn("water", takes(3)).await;
    let mut cup = spawn("cup", takes(1)).await;
    cup.join().await;
    water.join().await;
    note("tea");
}

pub fn main(_seed: u64) {
    let text = Text::default();
    let mut kernel = Kernel::new(Sim::new());
    kernel.trace_to(text.clone());
    let ran = kernel.run(tea());
    let log = String::from_utf8_lossy(&text.0.borrow()).into_owned();
    print!("{log}");
    if let Err(error) = ran {
        println!("# {error}");
    }
    let lines: Vec<Line> = log.lines().filter_map(parse).collect();
    let last = |verb: &str, task| {
        let mut found = lines.iter().filter(|line| line.verb == verb && line.task == task);
        found.next_back().map_or(0, |line| line.seq)
    };
    // Why was there tea, why did main wait for the water, and why was there a cup at all?
    for seq in [last("note", 1), last("block", 1), last("spawn", 3)] {
        let chain = super::lab::why(&lines, seq);
        let chain: Vec<String> = chain.iter().map(u64::to_string).collect();
        println!("# why {seq}: {}", chain.join(" "));
    }
}
