//! Files as responses: which files are found, which part is sent, and what a download keeps.

use std::cell::{Cell, RefCell};
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::net::TcpStream as StdStream;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};

use http_support::app::{Seen, get, with};
use kernel::trace::{Event, Line};
use kernel::{Kernel, Machine, Real, Sim};
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::pipe::duplex;
use net::web::{Files, Router};
use net::{Stream, TcpListener};
use traps::threads::Limiter;
use traps::{Time, spawn};

const TEXT: &str = "0123456789";
const THEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

struct App {
    routes: Router<()>,
    files: Files,
}

impl Handler for App {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        if let Err(answer) = self.routes.find(request) {
            return Ok(answer);
        }
        let name = request.raw_param("name").unwrap().to_owned();
        self.files.answer(request, &name).await
    }
}

/// A directory for one test, next to one that must not be reachable.
fn directory(test: &str) -> PathBuf {
    let root = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(test);
    fs::remove_dir_all(&root).ok();
    let home = root.join("home");
    fs::create_dir_all(home.join("sub")).unwrap();
    fs::write(root.join("secret.txt"), "secret").unwrap();
    write(&home.join("a.txt"), TEXT);
    write(&home.join("sub/b c.json"), "{}");
    write(&home.join("empty"), "");
    write(&home.join(".hidden"), "hidden");
    symlink("a.txt", home.join("link")).unwrap();
    symlink("../secret.txt", home.join("out")).unwrap();
    symlink("..", home.join("up")).unwrap();
    home
}

fn write(path: &Path, text: &str) {
    fs::write(path, text).unwrap();
    let then = UNIX_EPOCH + Duration::from_secs(784_111_777);
    File::options().write(true).open(path).unwrap().set_modified(then).unwrap();
}

fn app(home: &Path, limiter: &Limiter) -> App {
    let files = Files::open(home, limiter.clone()).unwrap();
    App { routes: Router::new().get("/{*name}", ()), files }
}

/// A machine in the year 2100, so that each file that a test writes is older, and responses of two
/// machines have the same `Date`.
fn sim() -> Sim {
    let new_year = UNIX_EPOCH + Duration::from_secs(4_102_444_800);
    Sim::new().jobs_take(Duration::from_millis(1)).wall_set_at(Time::ZERO, new_year)
}

fn talk(home: &Path, request: &str) -> Seen {
    http_support::app::talk(sim(), Config::default(), app(home, &Limiter::new("files", 2)), request)
}

#[test]
fn a_file_is_found_below_its_directory_and_nowhere_else() {
    let home = directory("files_found");
    for (name, kind, text) in [
        ("a.txt", "text/plain; charset=utf-8", TEXT),
        ("%61.txt", "text/plain; charset=utf-8", TEXT),
        ("a%2Etx%74", "text/plain; charset=utf-8", TEXT),
        ("a.txt?x=../y", "text/plain; charset=utf-8", TEXT),
        ("sub/b%20c.json", "application/json", "{}"),
        ("empty", "application/octet-stream", ""),
    ] {
        let seen = talk(&home, &get(&format!("GET /{name}")));
        assert_eq!((seen.statuses(), seen.body()), (vec![200], text), "{name}");
        assert_eq!(seen.field("Content-Type"), Some(kind), "{name}");
        assert_eq!(seen.field("Content-Length"), Some(&*text.len().to_string()), "{name}");
        assert_eq!(seen.field("Last-Modified"), Some(THEN), "{name}");
        assert!(!seen.closed, "{name}");
        let head = talk(&home, &get(&format!("HEAD /{name}")));
        let wanted = seen.text.split_once("\r\n\r\n").unwrap().0.to_owned() + "\r\n\r\n";
        assert_eq!(head.text, wanted, "{name}");
    }
    for name in [
        "none",
        "sub",
        "sub/",
        "a.txt/",
        "a.txt/x",
        "/a.txt",
        "",
        "link",
        "out",
        "up/secret.txt",
        "../secret.txt",
        "sub/../a.txt",
        "%2e%2e/secret.txt",
        "..%2fsecret.txt",
        "sub%2fb%20c.json",
        ".hidden",
        "a.txt%00",
        "a.txt%",
        "up/home/a.txt",
    ] {
        let seen = talk(&home, &get(&format!("GET /{name}")));
        assert_eq!(seen.statuses(), [404], "{name}: {}", seen.text);
        assert!(!seen.text.contains("secret"), "{name}");
    }
    let error = Files::open(&home.join("a.txt"), Limiter::new("files", 1)).unwrap_err();
    assert!(error.to_string().contains("a.txt"), "{error}");
}

#[test]
fn what_is_sent_is_what_conditions_and_ranges_ask_for() {
    let home = directory("files_conditions");
    let ask = |fields: &str| talk(&home, &with("GET /a.txt", fields));
    let seen = ask("Range: bytes=2-4");
    assert_eq!((seen.statuses(), seen.body()), (vec![206], "234"));
    assert_eq!(seen.field("Content-Range"), Some("bytes 2-4/10"));
    assert_eq!(seen.field("Content-Length"), Some("3"));
    let tag = seen.field("ETag").unwrap().to_owned();
    let seen = ask("Range: bytes=10-");
    assert_eq!((seen.statuses(), seen.field("Content-Range")), (vec![416], Some("bytes */10")));
    let seen = ask(&format!("If-None-Match: {tag}"));
    assert_eq!((seen.statuses(), seen.body()), (vec![304], ""));
    assert_eq!((seen.field("ETag"), seen.field("Last-Modified")), (Some(&*tag), Some(THEN)));
    assert_eq!((seen.field("Content-Length"), seen.field("Content-Type")), (None, None));
    assert_eq!(ask(&format!("If-Modified-Since: {THEN}")).statuses(), [304]);
    assert_eq!(ask("If-Match: \"other\"").statuses(), [412]);
    let resumed = ask(&format!("Range: bytes=8-\r\nIf-Range: {tag}"));
    assert_eq!((resumed.statuses(), resumed.body()), (vec![206], "89"));
    // Another file with the same length and, to the second, the same date.
    write(&home.join("new"), "abcdefghij");
    let new = File::options().write(true).open(home.join("new")).unwrap();
    new.set_modified(new.metadata().unwrap().modified().unwrap() + Duration::from_nanos(1))
        .unwrap();
    fs::rename(home.join("new"), home.join("a.txt")).unwrap();
    let resumed = ask(&format!("Range: bytes=8-\r\nIf-Range: {tag}"));
    assert_eq!((resumed.statuses(), resumed.body()), (vec![200], "abcdefghij"));
    assert_eq!(ask(&format!("If-None-Match: {tag}")).statuses(), [200]);
}

#[test]
fn a_tag_is_the_same_for_each_copy_of_a_file_that_keeps_its_length_and_date() {
    let tag = |home: &Path, name: &str| {
        let seen = talk(home, &get(&format!("GET /{name}")));
        assert_eq!(seen.statuses(), [200], "{name}");
        seen.field("ETag").unwrap().to_owned()
    };
    let [here, there] = ["files_here", "files_there"].map(directory);
    fs::rename(there.join("a.txt"), there.join("sub/b.txt")).unwrap();
    let tags = tag(&here, "a.txt");
    assert_eq!(tag(&there, "sub/b.txt"), tags);
    assert_eq!(tag(&here, "a.txt"), tags);
    write(&here.join("longer"), "01234567890");
    write(&here.join("later"), TEXT);
    let later = File::options().write(true).open(here.join("later")).unwrap();
    later.set_modified(UNIX_EPOCH + Duration::from_secs(784_111_778)).unwrap();
    assert!(tag(&here, "longer") != tags && tag(&here, "later") != tags);
}

#[test]
fn the_next_request_of_the_connection_is_answered_behind_a_file() {
    let home = directory("files_pipelined");
    let requests = get("GET /a.txt") + &get("HEAD /a.txt") + &get("GET /empty");
    let seen = talk(&home, &(requests + &get("GET /sub/b%20c.json")));
    assert_eq!((seen.statuses(), seen.closed), (vec![200; 4], false));
    assert!(seen.text.ends_with("\r\n\r\n{}"), "{}", seen.text);
}

#[test]
fn f21_a_download_holds_a_thread_for_a_piece_and_none_while_the_client_is_slow() {
    let home = directory("files_pieces");
    fs::write(home.join("large"), vec![b'x'; 100_000]).unwrap();
    let mut kernel = Kernel::new(sim());
    let jobs = jobs(&mut kernel);
    let limiter = Limiter::new("files", 2);
    let mut app = app(&home, &limiter);
    app.files = app.files.piece(1_000);
    let app = Rc::new(app);
    let ran = kernel.run(async {
        let mut clients = Vec::new();
        for _ in 0..30 {
            let (server, mut client) = duplex(500);
            let app = app.clone();
            let serve = async move { serve_connection(server, &*app, &Config::default()).await };
            let conn = spawn("conn", serve).await;
            client.write_all(get("GET /large").as_bytes()).await.unwrap();
            clients.push((client, conn));
        }
        traps::sleep(Duration::from_secs(1)).await.unwrap();
        // Downloads read ahead as far as allowed before they wait for the client.
        let most = 30 * (1 + 18);
        assert!((1..=most).contains(&jobs.get()), "{} jobs", jobs.get());
        assert_eq!((limiter.in_use(), limiter.waiting()), (0, 0), "nobody holds a thread");
        let (mut client, _) = clients.pop().unwrap();
        let mut read = 0;
        let mut buf = [0; 4096];
        while read < 100_000 {
            read += client.read(&mut buf).await.unwrap();
        }
        drop(client);
        open_files(&home, 29);
        for (client, mut conn) in clients {
            drop(client);
            conn.join().await.unwrap().unwrap_err();
        }
        open_files(&home, 0);
    });
    ran.unwrap();
    kernel.shutdown().unwrap();
}

#[test]
fn pieces_grow_while_the_client_takes_each_at_once_and_only_then() {
    const KIB: usize = 1024;
    let home = directory("files_growing");
    fs::write(home.join("large"), vec![b'x'; 4096 * KIB]).unwrap();
    let mut kernel = Kernel::new(sim());
    let jobs = jobs(&mut kernel);
    let app = Rc::new(app(&home, &Limiter::new("files", 2)));
    let config = Rc::new(Config::default());
    // The number of jobs of a download through a pipe, and the most bytes that it kept in memory.
    let download = async |capacity: usize| {
        let (server, mut client) = duplex(capacity);
        let (before, app, shared) = (jobs.get(), app.clone(), config.clone());
        let serve = async move { serve_connection(server, &*app, &shared).await };
        let mut conn = spawn("conn", serve).await;
        client.write_all(get("GET /large").as_bytes()).await.unwrap();
        let (mut read, mut most, mut buf) = (0, 0, vec![0; 8 * KIB]);
        while read < 4096 * KIB {
            read += client.read(&mut buf).await.unwrap();
            most = most.max(config.memory());
            traps::sleep(Duration::from_micros(100)).await.unwrap();
        }
        drop(client);
        conn.join().await.unwrap().unwrap();
        (jobs.get() - before, most / KIB as u64)
    };
    let ran = kernel.run(async {
        // One job opens the file. The pieces have 128, 256, 512, three times 1024, and 128 KiB.
        assert_eq!(download(8192 * KIB).await, (1 + 7, 1024));
        assert_eq!(download(64 * KIB).await, (1 + 32, 128));
        // In a pipe with little room, pieces grow and shrink again.
        let (jobs, most) = download(300 * KIB).await;
        assert!((1 + 4096 / 256..1 + 32).contains(&jobs) && most == 512, "{jobs} {most}");
        assert_eq!(config.memory(), 0);
    });
    ran.unwrap();
    kernel.shutdown().unwrap();
}

/// The number of jobs of a kernel from here on.
fn jobs<M: Machine>(kernel: &mut Kernel<M>) -> Rc<Cell<usize>> {
    let jobs = Rc::new(Cell::new(0));
    let seen = jobs.clone();
    kernel.observe(move |line: &Line<'_>| {
        if let Event::Offload { .. } = line.event {
            seen.set(seen.get() + 1);
        }
    });
    jobs
}

/// The number of descriptors of this process that are open on the large file.
fn open_files(home: &Path, count: usize) {
    let large = fs::canonicalize(home.join("large")).unwrap();
    let all = fs::read_dir("/proc/self/fd").unwrap();
    let links = all.filter_map(|entry| fs::read_link(entry.ok()?.path()).ok());
    let open = links.filter(|link| *link == large).count();
    assert_eq!(open, count, "files are open");
}

#[test]
fn a_file_that_becomes_shorter_breaks_its_answer_off() {
    let home = directory("files_shorter");
    fs::write(home.join("large"), vec![b'x'; 100_000]).unwrap();
    let mut kernel = Kernel::new(sim());
    let warnings = warnings(&mut kernel);
    let mut app = app(&home, &Limiter::new("files", 2));
    app.files = app.files.piece(1_000);
    let read = kernel.run(async {
        let (server, mut client) = duplex(500);
        let serve = async move { serve_connection(server, &app, &Config::default()).await };
        let mut conn = spawn("conn", serve).await;
        client.write_all(get("GET /large").as_bytes()).await.unwrap();
        traps::sleep(Duration::from_secs(1)).await.unwrap();
        File::options().write(true).open(home.join("large")).unwrap().set_len(10).unwrap();
        let (mut read, mut buf) = (0, [0; 4096]);
        loop {
            match client.read(&mut buf).await.unwrap() {
                0 => break,
                n => read += n,
            }
        }
        conn.join().await.unwrap().ok();
        read
    });
    assert!((1..100_000).contains(&read.unwrap()));
    kernel.shutdown().unwrap();
    assert_eq!(warnings.take(), ["a handler failed: cannot send large: it became shorter"]);
}

// ---- What the log says --------------------------------------------------------------------------

/// The `warn` lines of a kernel from here on.
fn warnings<M: Machine>(kernel: &mut Kernel<M>) -> Rc<RefCell<Vec<String>>> {
    let warnings = Rc::new(RefCell::new(Vec::new()));
    let heard = warnings.clone();
    kernel.observe(move |line: &Line<'_>| {
        if let Event::Warn { text } = &line.event {
            heard.borrow_mut().push(text.to_string());
        }
    });
    warnings
}

/// A file that this process is not allowed to read: its directory and its name. The superuser can
/// read every file with mode bits, but no user can read a file that the system only lets be
/// written.
fn forbidden(test: &str) -> (PathBuf, &'static str) {
    let home = directory(test);
    fs::set_permissions(home.join("a.txt"), Permissions::from_mode(0o000)).unwrap();
    let found = match File::open(home.join("a.txt")) {
        Err(_) => (home, "a.txt"),
        Ok(_) => (PathBuf::from("/sys/bus/platform"), "uevent"),
    };
    let error = File::open(found.0.join(found.1)).expect_err("there is a file that is forbidden");
    assert_eq!(error.kind(), io::ErrorKind::PermissionDenied);
    found
}

#[test]
fn a_file_that_may_not_be_read_has_a_line_with_its_name_the_peer_and_the_reason() {
    let (home, name) = forbidden("files_forbidden");
    let mut kernel = Kernel::new(Real::new().unwrap());
    let warnings = warnings(&mut kernel);
    let (answer, peer) = kernel
        .run(async {
            let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
            let mut client = StdStream::connect(listener.local_addr().unwrap()).unwrap();
            let request = with(&format!("GET /{name}"), "Connection: close");
            client.write_all(request.as_bytes()).unwrap();
            let app = app(&home, &Limiter::new("files", 2));
            let (stream, peer) = listener.accept().await.unwrap();
            let serve = async move { serve_connection(stream, &app, &Config::default()).await };
            spawn("conn", serve).await.join().await.unwrap().unwrap();
            let mut answer = String::new();
            client.read_to_string(&mut answer).unwrap();
            (answer, peer)
        })
        .unwrap();
    kernel.shutdown().unwrap();
    assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    let wanted = format!("cannot open {name} for {peer}: Permission denied (os error 13)");
    assert_eq!(warnings.take(), [wanted]);
}

#[test]
fn a_client_that_asks_for_such_a_file_without_end_has_one_line_a_second() {
    let (home, name) = forbidden("files_forbidden_often");
    let mut kernel = Kernel::new(sim());
    let warnings = warnings(&mut kernel);
    let app = app(&home, &Limiter::new("files", 2));
    let ran = kernel.run(async {
        let (server, mut client) = duplex(1 << 20);
        let serve = async move { serve_connection(server, &app, &Config::default()).await };
        spawn("conn", serve).detached().await;
        for _ in 0..3 {
            let burst = get(&format!("GET /{name}")).repeat(50);
            client.write_all(burst.as_bytes()).await.unwrap();
            traps::sleep(Duration::from_secs(1)).await.unwrap();
        }
    });
    ran.unwrap();
    kernel.shutdown().unwrap();
    let line = |more| format!("cannot open {name}: Permission denied (os error 13){more}");
    let more = " (and 49 more before)";
    assert_eq!(warnings.take(), [line(""), line(more), line(more)]);
}

/// Runs this test in a separate process, with few descriptors.
#[test]
fn a_shortage_of_descriptors_has_a_line_and_the_client_may_come_again() {
    const FEW: &str = "TRAPLINE_FILES_FEW";
    if std::env::var_os(FEW).is_none() {
        let mut with_few = Command::new("sh");
        let test = testing::child::this_test();
        let limited = format!("ulimit -n 40 && exec \"$0\" --exact {test} --nocapture");
        with_few.args(["-c", &limited]).arg(std::env::current_exe().unwrap()).env(FEW, "1");
        assert!(testing::child::output(&mut with_few).status.success());
        return;
    }
    let home = directory("files_shortage");
    let mut kernel = Kernel::new(sim());
    let warnings = warnings(&mut kernel);
    let app = app(&home, &Limiter::new("files", 2));
    let answer = kernel.run(async {
        let (server, mut client) = duplex(1 << 20);
        let serve = async move { serve_connection(server, &app, &Config::default()).await };
        spawn("conn", serve).detached().await;
        let full: Vec<File> = std::iter::from_fn(|| File::open("/dev/null").ok()).collect();
        client.write_all(get("GET /a.txt").as_bytes()).await.unwrap();
        let mut buf = [0; 4096];
        let n = client.read(&mut buf).await.unwrap();
        drop(full);
        String::from_utf8_lossy(&buf[..n]).into_owned()
    });
    kernel.shutdown().unwrap();
    let answer = answer.unwrap();
    assert!(answer.starts_with("HTTP/1.1 503 ") && answer.contains("Retry-After: 1"), "{answer}");
    assert_eq!(warnings.take(), ["cannot open a.txt: Too many open files (os error 24)"]);
}

/// A pipe without a writer holds up the thread that opens it and waits.
#[test]
fn a_named_pipe_is_no_file_and_holds_up_no_thread() {
    use rustix::fs::{CWD, FileType, Mode, mknodat};
    let home = directory("files_pipe");
    mknodat(CWD, home.join("pipe"), FileType::Fifo, Mode::RWXU, 0).unwrap();
    let app = app(&home, &Limiter::new("files", 1));
    let mut kernel = Kernel::new(Real::new().unwrap());
    let status = kernel.run(async {
        let (server, mut client) = duplex(1 << 16);
        let serve = async move { serve_connection(server, &app, &Config::default()).await };
        spawn("conn", serve).detached().await;
        client.write_all(get("GET /pipe").as_bytes()).await.unwrap();
        let mut line = [0; 12];
        let read = client.read_exact(&mut line);
        traps::timeout_after(testing::child::LIMIT, read).await.unwrap();
        line
    });
    assert_eq!(&status.unwrap(), b"HTTP/1.1 404");
    kernel.shutdown().unwrap();
}

#[test]
fn a_file_from_the_future_was_changed_when_it_is_sent() {
    let home = directory("files_future");
    for (second, changed) in [(700_000_000, None), (800_000_000, Some(THEN))] {
        let now = UNIX_EPOCH + Duration::from_secs(second);
        let sim = Sim::new().jobs_take(Duration::from_millis(1)).wall_set_at(Time::ZERO, now);
        let app = app(&home, &Limiter::new("files", 2));
        let seen = http_support::app::talk(sim, Config::default(), app, &get("GET /a.txt"));
        let changed = changed.or(seen.field("Date"));
        assert_eq!(seen.field("Last-Modified"), changed, "{}", seen.text);
    }
}
