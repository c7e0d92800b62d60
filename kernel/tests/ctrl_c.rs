//! Programs on the operating system, from their start to their exit code. Signals reach a whole
//! process, so each program is a process of its own: this binary again, with a name in [`PROGRAM`].

use std::io::{BufRead, BufReader};
use std::process::{Command, ExitCode, Output, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;
use std::{env, fs, io};

use kernel::Options;
use testing::child;
use traps::internal::ask_in_thread;
use traps::shutdown::{begun, hold};
use traps::{Signal, ignore_after, run_in_thread, shield, sleep, spawn};

const PROGRAM: &str = "TRAPLINE_TEST_PROGRAM";
/// What the kernel reports about a main that it has dropped.
const OVERDUE: &str = "Error: main was cancelled, did not end, and was dropped";
/// What it reports about a job that it has not waited for.
const CUT_OFF: &str = "Error: the shutdown cut off work in progress: jobs=1";
const DAY: Duration = Duration::from_secs(86_400);

/// Runs this program, which prints `line` before each of its waits.
async fn program(name: &str) -> io::Result<()> {
    match name {
        "returns" => Ok(()),
        "fails" => Err(io::Error::other("no luck")),
        "sleeps" => {
            println!("line");
            Ok(sleep(DAY).await.map(drop)?)
        }
        "asks" => {
            // The shutdown cancels this task, and waits for main.
            spawn("job", sleep(DAY)).detached().await;
            println!("line");
            Ok(begun().await?)
        }
        "swallows" => {
            // The halt does not wait for this job.
            spawn("job", run_in_thread(|| std::thread::sleep(DAY))).detached().await;
            loop {
                println!("line");
                let _ = sleep(DAY).await;
            }
        }
        "abandons a job" => {
            let job = || {
                println!("line");
                std::thread::sleep(DAY);
            };
            let ended = run_in_thread(job).await;
            // Main ends now, so the next signal comes while the halt waits for the job.
            println!("line");
            Ok(ended?)
        }
        "asks the system" => {
            let question = || {
                println!("line");
                std::thread::sleep(DAY);
            };
            Ok(ask_in_thread(question).await?)
        }
        "asks too long" => {
            let question = ask_in_thread(|| std::thread::sleep(DAY));
            let late = ignore_after(Duration::from_millis(1), question);
            assert!(late.await?.is_none());
            Ok(())
        }
        "leaves a hold" => {
            let works = async {
                let _hold = hold();
                sleep(DAY).await
            };
            spawn("works", works).detached().await;
            Ok(())
        }
        "leaves a task" => {
            spawn("stubborn", shield(sleep(DAY))).detached().await;
            Ok(())
        }
        "leaves a job" => {
            static BEGUN: AtomicBool = AtomicBool::new(false);
            let job = || {
                BEGUN.store(true, Ordering::SeqCst);
                std::thread::sleep(DAY);
            };
            spawn("job", run_in_thread(job)).detached().await;
            while !BEGUN.load(Ordering::SeqCst) {
                sleep(Duration::from_millis(1)).await?;
            }
            Ok(())
        }
        _ => panic!("no program {name}"),
    }
}

/// Starts a program, sends Ctrl-C after each of so many lines, and returns its end.
fn run(name: &str, interrupts: usize, trace: &str) -> Output {
    let mut command = Command::new(env::current_exe().unwrap());
    command.env(PROGRAM, name).arg(trace).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut program = child::spawn(&mut command);
    let mut lines = BufReader::new(program.stdout.take().unwrap()).lines();
    for _ in 0..interrupts {
        assert_eq!(lines.next().expect("a line, not the end").unwrap(), "line", "{name}");
        program.send("INT");
    }
    program.wait_with_output()
}

fn main() -> ExitCode {
    if let Ok(name) = env::var(PROGRAM) {
        let is_cut_off = name.starts_with("leaves");
        let grace = if is_cut_off { Duration::from_millis(1) } else { DAY };
        let options = Options::new().shutdown_on(&[Signal::Interrupt]).grace(grace);
        let options = if is_cut_off { options.drain(grace) } else { options };
        let options = options.trace(env::args().nth(1).unwrap());
        return kernel::main(options, program(&name));
    }
    let trace = env::temp_dir().join(format!("trapline-ctrl-c-{}.trace", std::process::id()));
    let trace = trace.to_str().unwrap();
    let cases = [
        ("returns", 0, 0, "", "exit     ok"),
        ("fails", 0, 1, "Error: Custom { kind: Other, error: \"no luck\" }", "exit     ok"),
        ("sleeps", 1, 130, "", "exit     cancelled"),
        ("asks", 1, 0, "", "exit     ok"),
        ("swallows", 2, 130, OVERDUE, "exit     dropped"),
        ("abandons a job", 2, 130, CUT_OFF, "exit     cancelled"),
        ("asks the system", 1, 130, "", "exit     cancelled"),
        ("asks too long", 0, 0, "", "exit     ok"),
    ];
    for (name, interrupts, code, printed, line) in cases {
        let ended = run(name, interrupts, trace);
        let errors = String::from_utf8(ended.stderr).unwrap();
        assert_eq!(ended.status.code(), Some(code), "{name}: {errors}");
        // The kernel may also report a long run there.
        let error = errors.lines().find(|line| line.starts_with("Error: "));
        assert_eq!(error.unwrap_or_default(), printed, "{name}: {errors}");
        let text = fs::read_to_string(trace).unwrap();
        assert!(text.contains(&format!("main     {line}")), "{name}: {text}");
        assert!(text.lines().last().unwrap().contains(" halt "), "{name}: {text}");
    }
    for (name, left) in
        [("leaves a hold", "holds=1"), ("leaves a task", "tasks=1"), ("leaves a job", "jobs=1")]
    {
        let ended = run(name, 0, trace);
        let errors = String::from_utf8(ended.stderr).unwrap();
        let wanted = format!("Error: the shutdown cut off work in progress: {left}\n");
        assert_eq!(ended.status.code(), Some(1), "{name}: {errors}");
        assert!(errors.ends_with(&wanted), "{name}: {errors}");
    }
    fs::remove_file(trace).unwrap();
    let refused = run("returns", 0, "/no/such/folder");
    assert_eq!(refused.status.code(), Some(1));
    let errors = String::from_utf8(refused.stderr).unwrap();
    assert!(errors.starts_with("Error: cannot create the trace /no/such/folder: "), "{errors}");
    ExitCode::SUCCESS
}
