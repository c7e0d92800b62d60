//! The logs that labs show equal those of the programs next to them.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use course::checks::{lab_14, lab_15};
use course::labs;
use kernel::{Kernel, Options, Sim};
use testing::trace::Line;

/// A log as a student sees it: call sites are in `program.rs`, and the spawn of `main` has none.
fn as_shown(log: &str, folder: &str) -> String {
    let log = log.replace(&format!("examples/course/labs/{folder}/given/"), "");
    let of_main = " at=examples/course/tests/";
    log.lines().map(|line| line.split(of_main).next().unwrap().to_owned() + "\n").collect()
}

/// In the order of the solution, the letters are the numbers of the lines.
#[test]
fn the_log_of_lab_14_is_that_of_its_program() {
    let log = as_shown(&testing::run(lab_14::given::program::bakery()).trace, "14_order");
    let lines = testing::trace::trace(&log).unwrap();
    // The lab leaves out lines that are not decisions about which task runs.
    let is_left_out =
        |line: &Line<'_>| line.name() == "wakeup" || ["halt", "notify"].contains(&line.verb);
    let lines = lines.iter().filter(|line| !is_left_out(line));
    let lab = labs::find(14).unwrap();
    let (solution, shuffled) = (lab.text("solution.txt"), lab.text("given/shuffled.log"));
    let letters = solution.split_whitespace().skip(1);
    let letters: Vec<_> = lines.zip(letters).collect();
    assert_eq!(letters.len(), 26);
    for (line, letter) in &letters {
        let mut event = line.event().to_owned();
        if let Some(cause) = line.cause {
            let (_, of_cause) = letters.iter().find(|(line, _)| line.seq == cause).unwrap();
            event = event.replace(&format!("cause=#{cause:04}"), &format!("cause={of_cause}"));
        }
        let shown = format!("{letter}  {:>3} {:<8} {event}", line.task, line.name());
        assert!(shuffled.lines().any(|other| other == shown), "{shown}");
    }
}

/// The target of a kernel's trace.
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

#[test]
fn the_log_of_lab_15_is_that_of_its_program() {
    let (mut options, sim, text) = (Options::new(), Sim::new(), Text::default());
    options.longrun = None;
    let cpu = sim.clock();
    let mut kernel = Kernel::with_options(sim, options);
    kernel.time_the_trace();
    kernel.trace_to(text.clone());
    kernel.run(lab_15::given::program::library(cpu)).unwrap().unwrap();
    kernel.shutdown().unwrap();
    let log = as_shown(&String::from_utf8(text.0.take()).unwrap(), "15_blocked");
    // The log without the lines about the machine.
    let (before, rest) = log.split_once(" 0.000000       0  #0000").unwrap();
    let log = before.to_owned() + rest.split_once('\n').unwrap().1;
    assert_eq!(log, labs::find(15).unwrap().text("given/library.trace"));
}
