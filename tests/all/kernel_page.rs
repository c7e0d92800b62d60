//! The live page of a server, and its bounded cost for the server, whatever the number of viewers.

use std::collections::{BTreeMap, BTreeSet};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::Duration;

use kernel::{Kernel, Real, Sim, SimClock as Clock};
use net::http::{Config, Handler, Request, Response, serve};
use net::{Stream, TcpListener};
use serde_json::Value;
use serving::kernel_page;
use testing::child;
use traps::sync::{Condition, Mutex};
use traps::{Interrupt, run_in_thread, sleep, spawn, yield_now};

struct Page;

impl Handler for Page {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        match request.path() {
            "/kernel" => kernel_page::page().await,
            "/kernel/metrics" => kernel_page::metrics().await,
            _ => kernel_page::feed(request).await,
        }
    }
}

/// Runs a server with the page, and returns what its clients return. All connections end before.
fn serve_while<T: Send + 'static>(clients: impl FnOnce(SocketAddr) -> T + Send + 'static) -> T {
    serve_beside(async {}, clients)
}

/// Runs a server with the page beside another task, `beside`.
fn serve_beside<T: Send + 'static>(
    beside: impl Future<Output = ()> + 'static,
    clients: impl FnOnce(SocketAddr) -> T + Send + 'static,
) -> T {
    let mut kernel = Kernel::new(Real::new().unwrap());
    kernel_page::watch(&mut kernel);
    let result = kernel.run(async {
        let config = Rc::new(Config::default());
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let addr = listener.local_addr().unwrap();
        spawn("server", serve(listener, Rc::new(Page), config.clone())).detached().await;
        spawn("beside", beside).detached().await;
        let result = run_in_thread(move || clients(addr)).await.unwrap();
        while config.connections() > 0 {
            sleep(Duration::from_millis(1)).await.unwrap();
        }
        sleep(Duration::ZERO).await.unwrap();
        assert_eq!(kernel_page::hidden(), 0);
        result
    });
    kernel.shutdown().unwrap();
    result.unwrap()
}

/// Opens the feed. Returns its status and its first update, if it has one.
fn open(addr: SocketAddr) -> (BufReader<TcpStream>, String, Option<String>) {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(child::LIMIT)).unwrap();
    stream.write_all(b"GET /kernel/events HTTP/1.1\r\nHost: a\r\n\r\n").unwrap();
    let mut lines = BufReader::new(stream);
    let mut status = String::new();
    lines.read_line(&mut status).unwrap();
    let update = status.contains(" 200 ").then(|| next(&mut lines));
    (lines, status, update)
}

/// Returns the next update of a feed.
fn next(feed: &mut BufReader<TcpStream>) -> String {
    feed.lines().map(Result::unwrap).find(|line| line.starts_with("data: ")).expect("an update")
}

#[test]
fn an_update_shows_the_busy_tasks_although_its_own_task_has_the_cpu() {
    let busy = async { while yield_now().await.is_ok() {} };
    serve_beside(busy, |addr| {
        let (mut feed, _, first) = open(addr);
        let value =
            |update: &str| -> Value { serde_json::from_str(&update["data: ".len()..]).unwrap() };
        let first = value(&first.unwrap());
        let row = first["rows"].as_array().unwrap().iter().find(|row| row["name"] == "beside");
        let look = value(&next(&mut feed))["common"]["look"].clone();
        let seen = look.as_array().unwrap().iter().find(|it| it["id"] == row.unwrap()["id"]);
        let state = &seen.expect("it is always busy")["state"];
        assert!(state == "running" || state == "ready", "{look}");
    });
}

#[test]
fn a_connection_to_the_page_leaves_nothing_behind() {
    serve_while(|addr| {
        for round in 0..20 {
            // The request has arrived before the connection is accepted, or not.
            let mut stream = TcpStream::connect(addr).unwrap();
            if round % 2 == 0 {
                std::thread::sleep(Duration::from_millis(2));
            }
            let close = "GET /kernel HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
            stream.write_all(close.as_bytes()).unwrap();
            stream.read_to_end(&mut Vec::new()).unwrap();
            if round % 4 == 0 {
                let feed = open(addr);
                assert!(feed.2.is_some(), "{}", feed.1);
            }
        }
    });
}

#[test]
fn eight_pages_are_open_at_a_time_and_share_their_updates() {
    serve_while(|addr| {
        let pages: Vec<_> = (0..8).map(|_| open(addr)).collect();
        let (_, status, _) = open(addr);
        assert!(status.starts_with("HTTP/1.1 503 "), "{status}");
        // An update is made at most twice a second, and these eight arrived at once, unless the
        // machine stalled.
        let updates: Vec<_> = pages.iter().map(|(_, _, update)| update).collect();
        assert!(updates.windows(2).any(|two| two[0] == two[1]), "{updates:?}");
        drop(pages);
        // A place is free as soon as the server has seen the end of a page.
        while open(addr).1.starts_with("HTTP/1.1 503 ") {}
    });
}

/// Runs a program on a virtual clock and a thread of its own, and returns the lints after it: their
/// kinds and texts, and the verbs of their lines.
fn lints<F: Future<Output = ()>>(
    program: impl FnOnce(Clock) -> F + Send + 'static,
) -> Vec<[String; 3]> {
    let run = || {
        let sim = Sim::new();
        let clock = sim.clock();
        let mut kernel = Kernel::new(sim);
        kernel_page::watch(&mut kernel);
        let ran = kernel.run(async {
            program(clock).await;
            kernel_page::lints(traps::clock().await)
        });
        ran.unwrap()
    };
    let lints = std::thread::spawn(run).join().unwrap();
    let read = |lint: &Value| {
        let verb =
            |line: &Value| line.as_str().unwrap().split_whitespace().nth(5).unwrap().to_owned();
        let verbs: Vec<_> = lint["lines"].as_array().unwrap().iter().map(verb).collect();
        let text = |key: &str| lint[key].as_str().unwrap().to_owned();
        [text("kind"), text("text"), verbs.join(" ")]
    };
    lints.as_array().unwrap().iter().map(read).collect()
}

const NO_LINT: [[&str; 3]; 0] = [];

/// Spawns a task that outlives the program.
async fn start(name: &'static str, body: impl Future<Output = Result<(), Interrupt>> + 'static) {
    spawn(name, body).detached().await;
}

async fn pass(seconds: u64) {
    sleep(Duration::from_secs(seconds)).await.unwrap();
}

async fn spin(clock: Clock, runs: u64) -> Result<(), Interrupt> {
    for _ in 0..runs {
        clock.advance(Duration::from_millis(120) / u32::try_from(runs).unwrap());
        yield_now().await?;
    }
    Ok(())
}

#[test]
fn a_task_that_never_yields_has_a_lint() {
    let run = |runs| {
        lints(move |clock| async move {
            start("busy-7", spin(clock, runs)).await;
            pass(1).await;
        })
    };
    let said = "busy-7 had the CPU for 120ms between two traps";
    assert_eq!(run(1), [["never yields", said, "longrun"]]);
    assert_eq!(run(3), NO_LINT);
}

#[test]
fn a_task_that_wakes_itself_has_a_lint() {
    let run = |yields| {
        lints(move |_| async move {
            start("poller", async move {
                for _ in 0..yields {
                    yield_now().await?;
                }
                sleep(Duration::from_secs(60)).await.map(drop)
            })
            .await;
            pass(1).await;
        })
    };
    let said = "poller (3) has caused 100 of its 100 wakes itself";
    assert_eq!(run(100), [["wakes itself", said, "wake"]]);
    assert_eq!(run(99), NO_LINT);
}

#[test]
fn a_wait_after_a_notification_that_woke_no_task_has_a_lint() {
    let run = |notifies_late: bool, waits| {
        lints(move |_| async move {
            let both = Rc::new((Mutex::new(()), Condition::named("changed")));
            let its = both.clone();
            both.1.notify_one();
            start("waiter", async move {
                let mut guard = its.0.lock().await?;
                its.1.wait(&mut guard).await
            })
            .await;
            pass(1).await;
            if notifies_late {
                both.1.notify_one();
            }
            pass(waits).await;
        })
    };
    let said = "waiter (3) waits for condition changed, which was last notified before, when \
                no task waited";
    assert_eq!(run(false, 4), [["perhaps a lost wake", said, "notify block"]]);
    assert_eq!(run(false, 3), NO_LINT, "it may still come");
    assert_eq!(run(true, 9), NO_LINT);
}

#[test]
fn a_lock_held_over_a_sleep_has_a_lint() {
    let run = |keeps: bool| {
        lints(move |_| async move {
            start("clerk", async move {
                let accounts = Mutex::named("accounts", ());
                let guard = accounts.lock().await?;
                let guard = keeps.then_some(guard);
                sleep(Duration::from_secs(2)).await?;
                drop(guard);
                sleep(Duration::from_secs(2)).await.map(drop)
            })
            .await;
            pass(9).await;
        })
    };
    let said = "clerk held mutex accounts during a sleep of 2s";
    assert_eq!(run(true), [["a lock held over a sleep", said, "take block"]]);
    assert_eq!(run(false), NO_LINT);
}

#[test]
fn a_task_whose_handle_was_dropped_has_a_lint_while_it_lives() {
    let run = |detaches: bool, lives| {
        lints(move |_| async move {
            let work = async move { sleep(Duration::from_secs(lives)).await };
            match detaches {
                true => spawn("work", work).detached().await,
                false => drop(spawn("work", work).await),
            }
            pass(5).await;
        })
    };
    let said = "work (3) runs, and no task can join it";
    assert_eq!(run(false, 9), [["no handle", said, "warn"]]);
    assert_eq!(run(false, 1), NO_LINT);
    assert_eq!(run(true, 9), NO_LINT);
}

#[test]
fn a_queue_that_only_grows_has_a_lint() {
    let run = |ends: bool| {
        lints(move |_| async move {
            let accounts = Rc::new(Mutex::named("accounts", ()));
            let holder = accounts.clone();
            start("holder", async move {
                let _guard = holder.lock().await?;
                pass(if ends { 8 } else { 60 }).await;
                Ok(())
            })
            .await;
            for _ in 0..12 {
                let its = accounts.clone();
                start("client", async move { its.lock().await.map(drop) }).await;
                pass(1).await;
                // As an open page does.
                kernel_page::lints(traps::clock().await);
            }
        })
    };
    let grows = "1 waited for mutex accounts, and now 12 do";
    let held = [
        "a lock held over a sleep",
        "holder held mutex accounts during a sleep of 60s",
        "take block",
    ];
    assert_eq!(run(false), [held, ["a queue that only grows", grows, "block"]]);
    let held = [
        "a lock held over a sleep",
        "holder held mutex accounts during a sleep of 8s",
        "take block",
    ];
    assert_eq!(run(true), [held]);
}

/// Asks for the metrics, on a connection of its own.
fn scrape(addr: SocketAddr) -> String {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(child::LIMIT)).unwrap();
    let request = "GET /kernel/metrics HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n";
    stream.write_all(request.as_bytes()).unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).unwrap();
    response
}

/// Reads the text format of Prometheus, and returns the value of each sample. Panics at what the
/// format or its conventions of names do not allow.
fn samples(text: &str) -> BTreeMap<String, f64> {
    let is_name = |name: &str| {
        let mut bytes = name.bytes();
        bytes.next().is_some_and(|it| it.is_ascii_lowercase())
            && bytes.all(|it| it.is_ascii_lowercase() || it == b'_')
    };
    assert!(text.ends_with('\n'), "the last line ends as well");
    let (mut family, mut kind) = ("", "");
    let (mut families, mut samples) = (BTreeSet::new(), BTreeMap::new());
    for line in text.lines() {
        if let Some(help) = line.strip_prefix("# HELP ") {
            let (name, help) = help.split_once(' ').unwrap();
            assert!(is_name(name) && help.ends_with('.') && families.insert(name), "{line}");
            (family, kind) = (name, "");
        } else if let Some(of) = line.strip_prefix("# TYPE ") {
            kind = of.strip_prefix(family).unwrap().trim_start();
            assert!(["counter", "gauge"].contains(&kind), "{line}");
            assert_eq!(kind == "counter", family.ends_with("_total"), "{line}");
        } else {
            let (sample, value) = line.rsplit_once(' ').unwrap();
            let (name, labels) = sample.strip_suffix('}').unwrap().split_once('{').unwrap();
            assert!(name == family && !kind.is_empty(), "a sample is below its family: {line}");
            for label in labels.split(',') {
                let (name, value) = label.split_once("=\"").unwrap();
                let value = value.strip_suffix('"').unwrap();
                assert!(is_name(name) && !value.contains(['"', '\\']), "{line}");
            }
            let known = samples.insert(sample.to_owned(), value.parse().unwrap());
            assert_eq!(known, None, "two samples are the same: {line}");
        }
    }
    samples
}

#[test]
fn prometheus_can_read_the_counts_and_they_add_up() {
    let (first, second) = serve_beside(std::future::pending(), |addr| {
        let first = scrape(addr);
        (0..4).for_each(|_| drop(scrape(addr)));
        (first, scrape(addr))
    });
    let [first, second] = [first, second].map(|response| {
        let (head, body) = response.split_once("\r\n\r\n").unwrap();
        let media = "Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n";
        assert!(head.starts_with("HTTP/1.1 200 ") && head.contains(media), "{head}");
        samples(body)
    });
    let value = |samples: &BTreeMap<String, f64>, name: &str| {
        let (family, label) = name.split_once(' ').unwrap_or((name, ""));
        let is_it = |sample: &str| sample.starts_with(family) && sample.contains(label);
        let found: Vec<f64> =
            samples.iter().filter(|(sample, _)| is_it(sample)).map(|(_, it)| *it).collect();
        assert_eq!(found.len(), 1, "{name}");
        found[0]
    };
    assert!(first.keys().eq(second.keys()));
    for (sample, before) in first.iter().filter(|(sample, _)| sample.contains("_total{")) {
        assert!(second[sample] >= *before, "a counter goes back: {sample}");
    }
    // The tasks of the scrapes in between do not count.
    let [before, after] = [&first, &second].map(|it| value(it, "trapline_tasks{ parked"));
    assert!(before == after && before > 0.0, "{before}, {after}");
    let living = value(&second, "trapline_tasks_started_total{")
        - value(&second, "trapline_tasks_ended_total{");
    let states = ["running", "ready", "parked"].map(|it| format!("trapline_tasks{{ {it}"));
    assert_eq!(living, states.iter().map(|state| value(&second, state)).sum::<f64>());
}
