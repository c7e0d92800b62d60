//! The explorer: it finds bugs that a plain run does not show, shrinks them, and repeats them.

mod planted;

use std::cell::Cell;
use std::io;
use std::rc::Rc;

use kernel::Sim;
use net::Stream;
use net::http::{Handler, Request, Response, serve_connection};
use net::pipe::duplex;
use planted::*;
use testing::{Case, Found, Setup, explore};
use traps::internal::liberty::{Liberty, is_explored};
use traps::io::{Direction, Io, Scripted};
use traps::{Time, clock, run_in_thread, sleep, spawn};

/// Explores both versions of a program. Returns the failure of the broken one.
fn explored<F: Future>(program: impl Fn(Version) -> (Sim, F)) -> Found {
    let (sim, main) = program(Version::Broken);
    Setup::new().sim(sim).run(main); // shows nothing
    let explored = explore(1..=300, || program(Version::Sound)).run();
    assert_eq!(explored.runs, 300);
    let broken = || explore(1..=1000, || program(Version::Broken));
    let found = broken().find().expect("it finds the bug");
    println!("{found}\n{}", found.trace);
    let again = broken().replay(&found.case.to_string());
    assert_eq!(again.map(|ran| ran.trace).unwrap_err().trace, found.trace);
    found
}

#[test]
fn it_finds_a_lost_wake() {
    assert_eq!(explored(lost_wake::program).seeds, 3);
}

#[test]
fn it_finds_a_lock_that_leaks_its_permit_on_a_cancellation() {
    assert_eq!(explored(permit_leak::program).seeds, 3);
}

#[test]
fn it_finds_a_deadline_that_fires_early() {
    assert_eq!(explored(early_deadline::program).seeds, 2);
}

#[test]
fn it_finds_a_descriptor_that_is_mixed_up_after_reuse() {
    assert_eq!(explored(reused_number::program).seeds, 3);
}

#[test]
fn it_finds_a_loop_that_starves() {
    assert_eq!(explored(starving_loop::program).seeds, 4);
}

/// Asserts that a program that relies on one liberty fails under that liberty, and under no other.
/// Returns the text of the smallest case.
fn only_under<F: Future>(liberty: Liberty, program: impl Fn() -> (Sim, F)) -> String {
    let all = || explore(1..=100, &program);
    all().without(liberty).run();
    let found = all().find().expect("it finds what was taken for granted");
    assert_eq!(found.case.liberties, [liberty]);
    assert!(all().only(&[liberty]).find().is_some());
    found.case.to_string()
}

/// Two tasks, each of which records its number. Returns the numbers in the order of the records.
async fn marks<W: Future>(wait: impl Fn(u32) -> W + Clone + 'static) -> Vec<u32> {
    let marks: Rc<Cell<Vec<u32>>> = Rc::default();
    let mut tasks = Vec::new();
    for number in 1..=2 {
        let (marks, wait) = (marks.clone(), wait.clone());
        let task = spawn("marks", async move {
            wait(number).await;
            let mut marked = marks.take();
            marked.push(number);
            marks.set(marked);
        });
        tasks.push(task.await);
    }
    for task in &mut tasks {
        task.join().await.unwrap();
    }
    marks.take()
}

#[test]
fn it_has_ready_tasks_run_in_any_order() {
    only_under(Liberty::Order, || {
        (Sim::new(), async { assert_eq!(marks(|_| std::future::ready(())).await, [1, 2]) })
    });
}

#[test]
fn it_has_arrivals_come_in_any_order() {
    let program = || {
        let second = Time::from_micros(1_000_000);
        let sim = Sim::new().ready_at(second, 1, Direction::Read);
        let main = async {
            let readable = |number| async move { Io::new(Scripted(number)).readable().await };
            assert_eq!(marks(readable).await, [1, 2]);
        };
        (sim.ready_at(second, 2, Direction::Read), main)
    };
    let found = explore(1..=100, program).only(&[Liberty::Arrivals]).find().unwrap();
    assert_eq!(found.case.liberties, [Liberty::Arrivals]);
}

#[test]
fn it_has_time_pass_unnoticed() {
    only_under(Liberty::Lateness, || {
        let main = async {
            sleep(MS).await.unwrap();
            assert_eq!(clock().await, Time::ZERO + MS);
        };
        (Sim::new(), main)
    });
}

#[test]
fn it_has_descriptors_look_ready() {
    only_under(Liberty::Readiness, || {
        let sim = Sim::new().ready_at(Time::ZERO + 50 * MS, 1, Direction::Read);
        let main = async {
            Io::new(Scripted(1)).readable().await.unwrap();
            assert!(clock().await >= Time::ZERO + 50 * MS, "nothing is there yet");
        };
        (sim, main)
    });
}

#[test]
fn it_has_reads_and_writes_move_less() {
    only_under(Liberty::Lengths, || {
        let main = async {
            let (mut one, mut other) = duplex(100);
            one.write_all(b"hello").await.unwrap();
            let mut buf = [0; 100];
            assert_eq!(other.read(&mut buf).await.unwrap(), 5);
        };
        (Sim::new(), main)
    });
}

#[test]
fn it_has_jobs_take_longer() {
    only_under(Liberty::Jobs, || {
        let main = async {
            let job = |number| async move {
                if number == 1 {
                    run_in_thread(|| ()).await.unwrap();
                } else {
                    sleep(100 * MS).await.unwrap();
                }
            };
            assert_eq!(marks(job).await, [1, 2]);
        };
        (Sim::new(), main)
    });
}

#[test]
fn a_case_has_a_text() {
    for text in [
        "seed=17 liberties=order,lateness decisions=23",
        "seed=1 liberties=jobs decisions=2 usual=1",
        "seed=0 liberties=none decisions=0",
    ] {
        let case: Case = text.parse().unwrap();
        assert_eq!(case.to_string(), text);
    }
    for text in
        ["", "seed=1", "seed=1 liberties=luck decisions=2", "seed=x liberties=jobs decisions=2"]
    {
        let error = text.parse::<Case>().unwrap_err();
        assert!(error.starts_with("expected a case such as `seed="), "{error}");
        assert!(error.ends_with(&format!(", found `{text}`")), "{error}");
    }
}

#[test]
fn a_program_that_fails_as_it_is_needs_no_seed() {
    let program = || (Sim::new(), std::future::pending::<()>());
    let found = explore(1..=10, program).find().unwrap();
    assert_eq!(
        (found.seeds, found.case.to_string()),
        (0, "seed=0 liberties=none decisions=0".into())
    );
    assert!(found.to_string().starts_with("the program fails as it is: every task is blocked"));
}

#[test]
fn an_exploration_that_panics_is_over() {
    let program = || -> (Sim, std::future::Ready<()>) {
        assert!(is_explored());
        panic!("it cannot be made")
    };
    let explored = std::panic::catch_unwind(|| drop(explore(1..=10, program).find()));
    assert!(explored.is_err() && !is_explored());
}

#[test]
fn a_program_that_changes_is_found_out() {
    let runs = Cell::new(0);
    let program = || {
        runs.set(runs.get() + 1);
        let fails = runs.get() == 5;
        (Sim::new(), async move { assert!(!fails) })
    };
    let why = explore(1..=10, program).find().unwrap().why;
    assert!(why.starts_with("rule: a program is the same in each run"), "{why}");
}

#[test]
#[should_panic = "replay with: seed="]
fn a_failure_says_how_to_see_it_again() {
    explore(1..=1000, || lost_wake::program(Version::Broken)).run();
}

#[test]
fn the_checker_knows_of_another_order() {
    let program = || {
        let main = async {
            let both = marks(|_| std::future::ready(())).await;
            assert_eq!(both, [1, 2]);
        };
        (Sim::new(), main)
    };
    let found = explore(1..=100, program).find().unwrap();
    let lines = testing::trace::trace(&found.trace).unwrap();
    let rules = |checker: testing::trace::Checker| -> Vec<&str> {
        let mut checker = checker;
        lines.iter().for_each(|line| checker.line(line));
        checker.end().err().unwrap_or_default().iter().map(|it| it.rule).collect()
    };
    assert_eq!(rules(testing::trace::Checker::default()), ["fifo"]);
    let mut told = testing::trace::Checker::default();
    found.trace.lines().filter(|line| line.starts_with('#')).for_each(|line| told.remark(line));
    assert!(rules(told).is_empty());
}

struct App;

impl Handler for App {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let path = request.path().to_owned();
        Ok(Response::text(run_in_thread(move || path).await?))
    }
}

/// Two requests in one piece, and their responses, byte for byte, however the pieces arrive.
#[test]
fn an_http_connection_lives_with_every_liberty() {
    let answers = || async {
        let (server, mut client) = duplex(256);
        let serve = async move { serve_connection(server, &App, &Rc::default()).await };
        let mut connection = spawn("connection", serve).await;
        let requests = b"GET /one HTTP/1.1\r\nHost: a\r\n\r\n\
            GET /two HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
        client.write_all(requests).await.unwrap();
        let (mut answers, mut buf) = (Vec::new(), [0; 100]);
        loop {
            match client.read(&mut buf).await.unwrap() {
                0 => break,
                n => answers.extend_from_slice(&buf[..n]),
            }
        }
        connection.join().await.unwrap().unwrap();
        let answers = String::from_utf8(answers).unwrap();
        assert_eq!(answers.matches("HTTP/1.1 200").count(), 2, "{answers}");
        assert!(answers.contains("/one") && answers.ends_with("/two"), "{answers}");
    };
    explore(1..=100, || (Sim::new(), answers())).run();
}
