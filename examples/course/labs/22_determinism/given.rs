//! Given: runs `lab::shop` many times and compares the logs.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;
use std::time::Duration;

use kernel::{Kernel, Sim};

use super::lab;
use super::scenario;
pub use super::scenario::Orders;

/// The unit of this lab.
pub const MS: Duration = Duration::from_millis(1);

/// How often the program runs.
const RUNS: usize = 32;

/// The text of a log, shared with the kernel that writes it.
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

/// The log of one run.
fn run(orders: Orders) -> String {
    let mut kernel = Kernel::new(Sim::new());
    let text = Text::default();
    kernel.trace_to(text.clone());
    let shop = kernel.run(lab::shop(orders)).unwrap_or_else(|error| panic!("{error}"));
    shop.unwrap_or_else(|error| panic!("the shop failed: {error}"));
    kernel.shutdown().unwrap_or_else(|error| panic!("in the shutdown, {error}"));
    drop(kernel);
    String::from_utf8(text.0.take()).expect("a log is ASCII")
}

/// Prints the log of the first run. A remark at its end has the first line, counted in the
/// file, at which another run differs.
pub fn main(seed: u64) {
    let runs: Vec<String> = (0..RUNS).map(|_| run(scenario::of(seed))).collect();
    let differs = |other: &String| {
        let same = runs[0].lines().zip(other.lines()).take_while(|(one, two)| one == two).count();
        (runs[0] != *other).then_some(same + 1)
    };
    print!("{}", runs[0]);
    match runs[1..].iter().filter_map(differs).min() {
        Some(line) => println!("# {RUNS} runs: they differ from line {line} of the file on"),
        None => println!("# {RUNS} runs: the same bytes"),
    }
}
