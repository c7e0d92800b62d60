//! The tick of the deadline table: from the owner, from the environment, or by default.
//!
//! The environment belongs to the process, so code that reads it runs in a child: this test binary.

use std::cell::RefCell;
use std::io::{self, ErrorKind};
use std::process::Command;
use std::rc::Rc;
use std::time::Duration;

use kernel::{Kernel, Machine, Options, Real, Sim};
use testing::child;

const VARIABLE: &str = "TRAPLINE_DEADLINE_TICK_MS";

#[derive(Clone, Default)]
struct Buffer(Rc<RefCell<Vec<u8>>>);

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Returns the ticks in the boot lines of a kernel that runs twice.
fn booted<M: Machine>(machine: M, options: Options) -> Vec<String> {
    let text = Buffer::default();
    let mut kernel = Kernel::with_options(machine, options);
    kernel.time_the_trace();
    kernel.trace_to(text.clone());
    kernel.run(async {}).unwrap();
    kernel.run(async {}).unwrap();
    kernel.shutdown().unwrap();
    let text = String::from_utf8(text.0.take()).unwrap();
    let boot = text.lines().filter(|line| line.contains(" boot "));
    boot.map(|line| line.split(" tick=").nth(1).unwrap().split(' ').next().unwrap().to_owned())
        .collect()
}

fn ticks(millis: u64) -> Options {
    Options::new().tick(Duration::from_millis(millis))
}

#[test]
fn d13_the_tick_of_the_owner_has_a_floor_and_a_default() {
    assert_eq!(booted(Sim::new(), ticks(1)), ["10ms"]);
    assert_eq!(booted(Sim::new(), ticks(0)), ["10ms"]);
    assert_eq!(booted(Sim::new(), ticks(700)), ["0.7s"]);
    assert_eq!(booted(Sim::new(), Options::new()), ["0.3s"]);
}

#[test]
#[ignore = "the child of the tests below"]
fn child() {
    match Real::new() {
        Ok(real) => println!("\nreal {:?}", booted(real, Options::new())),
        Err(error) => println!("\nerror {:?} {error}", error.kind()),
    }
    if let Ok(real) = Real::new() {
        println!("owner {:?}", booted(real, ticks(20)));
    }
    println!("virtual {:?}", booted(Sim::new(), Options::new()));
}

/// Returns the output of the child in this environment.
fn said(environment: Option<&str>) -> Vec<String> {
    let mut command = Command::new(std::env::current_exe().unwrap());
    let test = child::test_in(module_path!(), "child");
    command.args(["--ignored", "--exact", &test, "--nocapture"]);
    match environment {
        Some(value) => command.env(VARIABLE, value),
        None => command.env_remove(VARIABLE),
    };
    let output = child::output(&mut command);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let words = ["real ", "error ", "owner ", "virtual "];
    let lines = text.lines().filter(|line| words.iter().any(|word| line.starts_with(word)));
    lines.map(str::to_owned).collect()
}

#[test]
fn d13_the_tick_comes_from_the_environment_unless_the_owner_or_the_virtual_clock_knows_better() {
    for (environment, real) in
        [(None, "0.3s"), (Some("250"), "0.25s"), (Some("1"), "10ms"), (Some("0"), "10ms")]
    {
        let wanted = [
            format!("real [\"{real}\"]"),
            "owner [\"20ms\"]".to_owned(),
            "virtual [\"0.3s\"]".to_owned(),
        ];
        assert_eq!(said(environment), wanted, "{environment:?}");
    }
}

#[test]
fn d13_a_tick_that_is_no_number_is_a_clear_error_and_the_virtual_clock_does_not_care() {
    let kind = ErrorKind::InvalidInput;
    for value in ["", "soon", "-1", "0.5", "300ms", "99999999999999999999"] {
        let text = format!("expected a number of milliseconds up to 3600000, not `{value}`");
        let wanted =
            [format!("error {kind:?} {VARIABLE}: {text}"), "virtual [\"0.3s\"]".to_owned()];
        assert_eq!(said(Some(value)), wanted);
    }
}

/// The kernel reads the variable once, when the machine is made. A test cannot see that, because a
/// process does not change its environment while it runs. So check that one place reads it.
#[test]
fn d14_the_environment_is_read_when_the_machine_is_made_and_nowhere_else() {
    let source = include_str!("../../src/machine/real.rs");
    assert_eq!(source.matches("env::").count(), 1);
    let new = source.split("pub fn new() -> io::Result<Real> {").nth(1).unwrap();
    assert!(new.split("\n    }\n").next().unwrap().contains("env::var_os(TICK)"));
    // No other file of the kernel may touch it: tests/all/arrows.rs.
}
