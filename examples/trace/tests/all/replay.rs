//! `replay`: a record is run again up to a line, in a debugger too.

use std::io::{BufRead as _, BufReader, Read as _, Write as _};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use support::examples;
use testing::child;
use testing::trace::Line;
use trace_tool::model::Trace;

/// Records a run of `echo` with one client. Returns the record and the log.
fn record(name: &str) -> (PathBuf, Trace) {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR"));
    let [record, log] = ["record", "trace"].map(|end| folder.join(format!("{name}.{end}")));
    let mut server = Command::new(examples::build("echo"));
    server.args(["--addr", "127.0.0.1:0", "--record"]).arg(&record).arg("--trace").arg(&log);
    let mut server = child::spawn(server.stdout(Stdio::piped()).stderr(Stdio::null()));
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let place = line.trim_end().strip_prefix("listening on ").expect("it says where it listens");
    let mut client = TcpStream::connect(place).unwrap();
    client.write_all(b"hello\n").unwrap();
    client.read_exact(&mut [0; 6]).unwrap();
    drop(client);
    child::send("TERM", server.id());
    assert!(server.wait().unwrap().success());
    (record, Trace::read(std::fs::read(log).unwrap(), |_| {}).unwrap())
}

/// Runs the tool with this on its standard input. Returns its output, and its errors.
fn tool(args: &[&str], input: &str) -> [String; 2] {
    let mut shell = Command::new("sh");
    shell.args(["-c", "printf \"$0\" | \"$@\"", input]).arg(examples::build("trace")).args(args);
    let ran = child::output(&mut shell);
    [ran.stdout, ran.stderr].map(|text| String::from_utf8_lossy(&text).into_owned())
}

fn has_gdb() -> bool {
    child::output(Command::new("sh").args(["-c", "command -v gdb"])).status.success()
}

#[test]
fn a_replay_stops_at_the_line_and_a_debugger_in_the_poll_that_wrote_it() {
    let (record, trace) = record("debugged");
    let record = record.to_str().unwrap();
    // Whether the task of the client ever waits depends on the speed of the client.
    let is_it = |line: Line<'_>| line.verb == "block" && line.event().contains(" l1 read ");
    let waits = (0..trace.len()).rfind(|place| is_it(trace.line(*place)));
    let waits = waits.expect("main waits for the next client");
    let until = format!("#{:04}", trace.seq(waits));
    let [table, _] = tool(&["replay", record, "--until", &until], "");
    let expected = format!("the replay has stopped at line {until}\n");
    assert!(table.starts_with(&expected) && table.contains(" running io l1 read "), "{table}");

    let [_, error] = tool(&["replay", record, "--until", "9999", "--debugger", "gdb"], "");
    assert!(error.starts_with("trace: the replay does not reach #9999: "), "{error}");
    let other = ["replay", record, "--until", "9", "--debugger", "gdb", "--program", "/bin/true"];
    let expected = "expected a program with the symbol kernel::record::stop_here\n";
    assert_eq!(tool(&other, "")[1], format!("trace: cannot debug /bin/true: {expected}"));

    if !has_gdb() {
        println!("skipped: there is no gdb");
        return;
    }
    let debugged = ["replay", record, "--until", &until, "--debugger", "gdb"];
    let [shown, error] = tool(&debugged, "bt\nquit\n");
    let run = (0..waits).rfind(|place| trace.verb(*place) == "run").unwrap();
    let pause =
        format!("the poll that wrote {until} began at #{:04}: pausing there", trace.seq(run));
    assert!(error.contains(&pause), "{error}");
    // The second stop is in the program, below the poll of its task.
    let (pause, site) = shown.rsplit_once("\nTemporary breakpoint 2").unwrap_or_default();
    assert!(pause.contains("kernel::record::stop_here"), "{shown}{error}");
    assert!(site.contains("examples/servers/echo.rs:25"), "{shown}{error}");
    assert!(site.contains("kernel/src/core/run.rs"), "{shown}{error}");
}
