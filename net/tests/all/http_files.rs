//! Files as responses: which files are found, which part is sent, and what a download keeps.

use std::cell::{Cell, RefCell};
use std::fs::{self, File, Permissions};
use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream as StdStream};
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::time::{Duration, UNIX_EPOCH};

use http_support::app::{Seen, get, with};
use kernel::trace::{Event, Line};
use kernel::{Kernel, Machine, Options, Real, Sim};
use net::http::{Config, Exchange, Handler, Request, Response, serve_connection};
use net::pipe::duplex;
use net::web::{Files, Router};
use net::{Stream, TcpListener, TcpStream};
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
        self.files.respond(request, &name).await
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
#[cfg(target_os = "linux")]
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

// ---- Sent by the system -------------------------------------------------------------------------

/// A file of this length, with bytes that show their place.
fn pattern(home: &Path, length: usize) -> Vec<u8> {
    let bytes: Vec<u8> = (0..length).map(|at| (at % 251) as u8).collect();
    fs::write(home.join("large"), &bytes).unwrap();
    bytes
}

/// Two ends of a connection over loopback. The buffers are small, so the socket is often full.
async fn connection() -> (TcpStream, TcpStream) {
    let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = listener.local_addr().unwrap();
    let (client, accepted) = traps::join(TcpStream::connect(address), listener.accept()).await;
    let ends = (accepted.unwrap().0, client.unwrap());
    for end in [&ends.0, &ends.1] {
        end.set_buffer_sizes(64 << 10, 64 << 10).unwrap();
    }
    ends
}

/// A server of files on the real clock, and what it does.
struct Served {
    app: Rc<App>,
    config: Rc<Config>,
    limiter: Limiter,
    jobs: Rc<Cell<usize>>,
    warnings: Rc<RefCell<Vec<String>>>,
    /// The access log: statuses and lengths.
    log: Rc<RefCell<Vec<(u16, u64)>>>,
}

impl Served {
    /// Serves a connection in a task of its own. Returns its end, and the task.
    async fn serve(&self) -> (TcpStream, traps::Task<io::Result<()>>) {
        let (server, client) = connection().await;
        (client, self.serve_at(server).await)
    }

    async fn serve_at(&self, server: impl Stream + 'static) -> traps::Task<io::Result<()>> {
        let (app, config) = (self.app.clone(), self.config.clone());
        let serve = async move { serve_connection(server, &*app, &config).await };
        spawn("conn", serve).await
    }

    /// Waits until a download has sent something and waits for its client.
    async fn is_stalled(&self) {
        while self.jobs.get() < 2 || self.limiter.in_use() > 0 {
            traps::yield_now().await.unwrap();
        }
        traps::yield_now().await.unwrap();
    }
}

/// Runs `body` with a server of the files in `home`.
fn served(home: &Path, body: impl AsyncFnOnce(&Served)) {
    served_with(Config::default(), home, body);
}

fn served_with(mut config: Config, home: &Path, body: impl AsyncFnOnce(&Served)) {
    let mut kernel = Kernel::new(Real::new().unwrap());
    let (jobs, warnings) = (jobs(&mut kernel), warnings(&mut kernel));
    let (limiter, log) = (Limiter::new("files", 2), Rc::new(RefCell::new(Vec::new())));
    let told = log.clone();
    config.on_exchange(move |it: &Exchange<'_>| told.borrow_mut().push((it.status, it.length)));
    let (app, config) = (Rc::new(app(home, &limiter)), Rc::new(config));
    let served = Served { app, config, limiter, jobs, warnings, log };
    let ran = kernel.run(traps::timeout_after(testing::child::LIMIT, async {
        body(&served).await;
        Ok::<_, traps::Interrupt>(())
    }));
    ran.unwrap().unwrap();
    kernel.shutdown().unwrap();
}

/// Reads a response with a length, and returns its body.
async fn response(client: &mut (impl Stream + ?Sized)) -> Vec<u8> {
    let mut head = Vec::new();
    while !head.ends_with(b"\r\n\r\n") {
        let mut byte = [0];
        client.read_exact(&mut byte).await.unwrap();
        head.extend(byte);
    }
    let head = String::from_utf8(head).unwrap();
    let length = head.split_once("Content-Length: ").unwrap().1.lines().next().unwrap();
    let mut body = vec![0; length.parse().unwrap()];
    client.read_exact(&mut body).await.unwrap();
    body
}

#[test]
fn a_socket_gets_the_bytes_of_each_file_and_of_each_part_and_then_the_next_response() {
    const JOB: usize = 4 << 20;
    let home = directory("files_by_system");
    served(&home, async |served| {
        let (mut client, mut conn) = served.serve().await;
        let lengths = [16 << 10, 128 << 10, JOB, JOB + (16 << 10)];
        for length in lengths.into_iter().flat_map(|at| [at - 1, at, at + 1]) {
            let bytes = pattern(&home, length);
            let requests = get("GET /large") + &get("HEAD /large") + &get("GET /a.txt");
            client.write_all(requests.as_bytes()).await.unwrap();
            assert!(response(&mut client).await == bytes, "{length}");
            let mut text = Vec::new();
            while !text.ends_with(TEXT.as_bytes()) {
                let mut byte = [0];
                client.read_exact(&mut byte).await.unwrap();
                text.extend(byte);
            }
            assert_eq!(String::from_utf8(text).unwrap().matches("HTTP/1.1 200 ").count(), 2);
            for (from, to) in [(1, length - 1), (length / 2, length - 1), (7, 7)] {
                let range = with("GET /large", &format!("Range: bytes={from}-{to}"));
                client.write_all(range.as_bytes()).await.unwrap();
                assert!(response(&mut client).await == bytes[from..=to], "{length} {from} {to}");
            }
            let log = served.log.take();
            let told: Vec<_> = log.iter().map(|(_, length)| *length as usize).collect();
            assert_eq!(told, [length, 0, 10, length - 1, length - length / 2, 1]);
        }
        drop(client);
        conn.join().await.unwrap().unwrap();
        assert_eq!(served.warnings.take(), [""; 0]);
    });
}

#[test]
fn the_response_before_a_file_is_reported_before_the_file_is_sent() {
    let home = directory("files_reported");
    pattern(&home, 16 << 20);
    served(&home, async |served| {
        let (mut client, conn) = served.serve().await;
        let requests = get("GET /a.txt") + &get("GET /large");
        client.write_all(requests.as_bytes()).await.unwrap();
        served.is_stalled().await;
        assert_eq!(served.log.take(), [(200, 10)]);
        drop((client, conn));
    });
}

#[test]
fn a_client_that_does_not_read_holds_no_thread_and_no_large_buffer() {
    let home = directory("files_unread");
    let bytes = pattern(&home, 16 << 20);
    served(&home, async |served| {
        let (mut client, mut conn) = served.serve().await;
        client.write_all(get("GET /large").as_bytes()).await.unwrap();
        served.is_stalled().await;
        assert_eq!((served.config.memory(), served.limiter.in_use()), (0, 0));
        open_files(&home, 1);
        assert!(response(&mut client).await == bytes);
        drop(client);
        conn.join().await.unwrap().unwrap();
        open_files(&home, 0);
    });
}

#[test]
fn a_client_that_takes_nothing_in_time_loses_its_download() {
    let home = directory("files_late");
    pattern(&home, 16 << 20);
    let mut config = Config::default();
    config.deadlines.write = Duration::from_millis(20);
    served_with(config, &home, async |served| {
        let (mut client, mut conn) = served.serve().await;
        client.write_all(get("GET /large").as_bytes()).await.unwrap();
        conn.join().await.unwrap().unwrap();
        let mut all = Vec::new();
        client.read_to_end(&mut all, 16 << 20).await.unwrap();
        assert!((1..16_000_000).contains(&all.len()), "{}", all.len());
        open_files(&home, 0);
        let log = served.log.take();
        assert!(matches!(log[..], [(200, 1..16_000_000)]), "{log:?}");
    });
}

#[test]
fn a_client_that_leaves_in_the_middle_ends_its_download() {
    let home = directory("files_left");
    pattern(&home, 16 << 20);
    served(&home, async |served| {
        let (mut client, mut conn) = served.serve().await;
        client.write_all(get("GET /large").as_bytes()).await.unwrap();
        client.read_exact(&mut [0; 100_000]).await.unwrap();
        drop(client);
        conn.join().await.unwrap().unwrap_err();
        open_files(&home, 0);
        let log = served.log.take();
        assert!(matches!(log[..], [(200, 90_000..16_000_000)]), "{log:?}");
    });
}

#[test]
fn a_file_that_becomes_shorter_breaks_off_what_the_system_sends() {
    let home = directory("files_cut");
    pattern(&home, 16 << 20);
    served(&home, async |served| {
        let (mut client, mut conn) = served.serve().await;
        let peer = client.local_addr().unwrap();
        client.write_all(get("GET /large").as_bytes()).await.unwrap();
        served.is_stalled().await;
        File::options().write(true).open(home.join("large")).unwrap().set_len(10).unwrap();
        let (mut read, mut buf) = (0, vec![0; 4096]);
        while let Ok(1..) = client.read(&mut buf).await.inspect(|n| read += n) {}
        assert!((1..16 << 20).contains(&read));
        conn.join().await.unwrap().ok();
        let why = format!("a handler failed: cannot send large for {peer}: it became shorter");
        assert_eq!(served.warnings.take(), [why]);
    });
}

#[test]
fn a_socket_that_takes_no_files_gets_the_bytes_all_the_same() {
    use rustix::fs::{OFlags, fcntl_setfl};
    let home = directory("files_append");
    let bytes = pattern(&home, 1 << 20);
    served(&home, async |served| {
        let (server, mut client) = connection().await;
        // sendfile(2) refuses a descriptor in this mode.
        fcntl_setfl(&server, OFlags::APPEND | OFlags::NONBLOCK).unwrap();
        let mut conn = served.serve_at(server).await;
        client.write_all(get("GET /large").as_bytes()).await.unwrap();
        client.read_exact(&mut [0; 12]).await.unwrap();
        assert_eq!(served.config.memory(), 128 << 10, "a piece was read");
        assert!(response(&mut client).await == bytes);
        drop(client);
        conn.join().await.unwrap().unwrap();
    });
}

#[test]
fn a_replay_sends_a_file_that_is_neither_in_the_record_nor_on_the_disk() {
    const LENGTH: usize = 8 << 20;
    let home = directory("files_replayed");
    pattern(&home, LENGTH);
    let program = async |bound: &dyn Fn(SocketAddr)| {
        let mut listener = TcpListener::bind("127.0.0.1:0").unwrap();
        bound(listener.local_addr().unwrap());
        let (log, mut config) = (Rc::new(RefCell::new(Vec::new())), Config::default());
        let told = log.clone();
        config.on_exchange(move |it: &Exchange<'_>| told.borrow_mut().push((it.status, it.length)));
        let app = app(&home, &Limiter::new("files", 2));
        let (stream, _) = listener.accept().await.unwrap();
        serve_connection(stream, &app, &config).await.unwrap();
        log.take()
    };
    let record = home.with_file_name("record");
    let mut kernel = Kernel::record_to(&record, Options::new()).unwrap();
    let client = RefCell::new(None);
    let start = |address| {
        let read = move || {
            let mut client = StdStream::connect(address).unwrap();
            let request = with("GET /large", "Connection: close");
            client.write_all(request.as_bytes()).unwrap();
            let mut answer = Vec::new();
            client.read_to_end(&mut answer).unwrap();
            answer
        };
        client.replace(Some(std::thread::spawn(read)));
    };
    let live = kernel.run(program(&start)).unwrap();
    kernel.shutdown().unwrap();
    drop(kernel);
    assert_eq!(live, [(200, LENGTH as u64)]);
    let answer = client.take().unwrap().join().unwrap();
    assert!(answer.ends_with(&fs::read(home.join("large")).unwrap()));
    let text = fs::read(&record).unwrap();
    assert!(text.len() < LENGTH / 4, "{} bytes", text.len());
    let lines = String::from_utf8_lossy(&text).matches("\n<sendfile ok ").count();
    assert!(lines > 1, "{lines}");
    fs::remove_file(home.join("large")).unwrap();
    let replayed = testing::replay(&record, program(&|_| ())).output;
    assert_eq!(replayed, live);
}
