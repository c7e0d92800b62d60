//! A recorded run, run again: the log of the replay is the log of the run, byte for byte, and if
//! the program differs from its record, the error names the place.

use std::fs;
use std::io::{BufRead, BufReader, ErrorKind, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Mutex;
use std::thread;
use std::time::Duration;

use testing::child;
use testing::trace;

use support::examples::build;

/// A client gives up after this time, so that a test ends.
const PATIENCE: Duration = Duration::from_secs(60);

fn file(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name)
}

/// Uses a server at an address. Calls the given function to end the server by SIGTERM.
type Drive<'a> = &'a dyn Fn(&str, &(dyn Fn() + Sync));

/// Records a server while `drive` uses it, up to its end by SIGTERM. Returns the log, if it has
/// one.
fn record(name: &str, record: &Path, args: &[&str], drive: Drive<'_>) -> String {
    record_and_tell(name, record, args, drive).0
}

/// Like [`record`]. Also returns the messages of the server.
fn record_and_tell(name: &str, record: &Path, args: &[&str], drive: Drive<'_>) -> (String, String) {
    let mut command = Command::new(build(name));
    command.args(["--addr", "127.0.0.1:0", "--record"]).arg(record).args(args);
    let mut process = child::spawn(command.stdout(Stdio::piped()).stderr(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim_end().strip_prefix("listening on ").expect("it says where it listens");
    drive(addr, &|| process.send("TERM"));
    let mut told = String::new();
    process.stderr.take().unwrap().read_to_string(&mut told).unwrap();
    process.wait().unwrap();
    assert!(told.contains("which will hold what clients send"), "{told}");
    assert_eq!(fs::metadata(record).unwrap().permissions().mode() & 0o777, 0o600);
    let text = fs::read_to_string(record).unwrap();
    assert_eq!(text.lines().last(), Some("<end"), "{name}");
    let log = text.lines().filter(|line| !line.starts_with('<'));
    (log.map(|line| format!("{line}\n")).collect(), told)
}

/// Replays a record, and returns the log of the replay.
fn replay(name: &str, record: &Path) -> String {
    let trace = record.with_extension("replayed");
    let mut command = Command::new(build(name));
    command.arg("--replay").arg(record).arg("--trace").arg(&trace);
    let output = child::output(&mut command);
    let told = String::from_utf8_lossy(&output.stderr);
    let code = output.status.code();
    let is_cut_off = told.contains("the shutdown cut off work");
    assert!(code == Some(0) || is_cut_off && code == Some(1), "{}: {told}", record.display());
    fs::read_to_string(trace).unwrap()
}

/// Records with and without the log, and compares each with its replay.
#[track_caller]
fn is_replayed(name: &str, test: &str, args: &[&str], drive: Drive<'_>) {
    let with = file(&format!("{test}_with.record"));
    let log = record(name, &with, &[args, &["--trace", with.to_str().unwrap()]].concat(), drive);
    assert!(log.lines().last().unwrap().contains(" halt "), "{log}");
    let replayed = replay(name, &with);
    // `assert_eq` would print megabytes.
    let differs = log.lines().zip(replayed.lines()).find(|(a, b)| a != b);
    assert!(log == replayed, "{name}: {differs:?}");

    let without = file(&format!("{test}_without.record"));
    let nothing = record(name, &without, args, drive);
    assert_eq!(nothing, "", "{name}");
    let first = replay(name, &without);
    let lines = trace::trace(&first).unwrap();
    if let Err(broken) = trace::check(&lines) {
        panic!("{name}: {broken:?}");
    }
    assert!(first.lines().last().unwrap().contains(" halt "), "{first}");
    assert!(first == replay(name, &without), "{name}: two replays differ");
}

/// Numbers that look random, from a seed.
struct Dice(u64);

impl Dice {
    fn roll(&mut self, sides: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888);
        (self.0 >> 33) % sides
    }
}

fn connect(addr: &str) -> TcpStream {
    let stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(PATIENCE)).unwrap();
    stream.set_write_timeout(Some(PATIENCE)).unwrap();
    stream
}

/// Closes a connection with a reset, because bytes are left to read, or lost on the way.
fn reset(stream: &TcpStream) {
    let socket = socket2::SockRef::from(stream);
    socket.set_linger(Some(Duration::ZERO)).unwrap();
}

/// Runs some clients at once. Each gets its number.
fn clients(count: u64, client: impl Fn(u64) + Sync) {
    thread::scope(|threads| {
        for number in 0..count {
            let client = &client;
            threads.spawn(move || client(number));
        }
    });
}

#[test]
fn http_under_a_storm_of_clients_is_replayed() {
    let folder = file("replay_files");
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join("small.txt"), "small\n").unwrap();
    fs::write(folder.join("big.bin"), vec![7; 400_000]).unwrap();
    let args = ["--deadline-head", "20", "--deadline-idle", "30", "--files"];
    let args = [&args[..], &[folder.to_str().unwrap()], &["--drain", "1000"]].concat();
    let requests = [
        "GET /plaintext HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /blocking?ms=1 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /sleep?ms=2 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /stream?chunks=3 HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /files/small.txt HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /files/big.bin HTTP/1.1\r\nHost: x\r\n\r\n",
        "GET /files/none HTTP/1.1\r\nHost: x\r\n\r\n",
        "POST /echo HTTP/1.1\r\nHost: x\r\nContent-Length: 5\r\n\r\nhello",
        "BAD\r\n\r\n",
    ];
    is_replayed("http", "replay_http", &args, &|addr, end| {
        clients(8, |number| {
            let mut dice = Dice(number);
            for round in 0..12 {
                if (number, round) == (7, 10) {
                    end();
                }
                // For example, the server has ended.
                let Ok(mut stream) = TcpStream::connect(addr) else { return };
                stream.set_read_timeout(Some(PATIENCE)).unwrap();
                let pipelined = 1 + dice.roll(3);
                let mut sent = String::new();
                (0..pipelined).for_each(|_| sent += requests[dice.roll(9) as usize]);
                let kind = dice.roll(5);
                if kind == 0 {
                    // A head without its end, so that its deadline expires.
                    sent.truncate(10);
                }
                // The server may have closed the connection by then.
                let _ = stream.write_all(sent.as_bytes());
                if kind == 1 {
                    let _ = stream.read(&mut [0; 100]);
                    reset(&stream);
                    continue;
                }
                if kind == 2 {
                    let _ = stream.shutdown(Shutdown::Write);
                }
                // Up to its end, at the latest by the deadline between two requests.
                let _ = stream.read_to_end(&mut Vec::new());
            }
        });
    });
}

#[test]
fn many_requests_of_many_connections_are_replayed() {
    // So that no connection ends early because the machine has stalled.
    let args = ["--deadline-head=off", "--deadline-idle=off"];
    is_replayed("http", "replay_load", &args, &|addr, end| {
        clients(4, |_| {
            let mut streams: Vec<_> = (0..16).map(|_| connect(addr)).collect();
            for _ in 0..20 {
                for stream in &mut streams {
                    stream.write_all(b"GET /plaintext HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
                }
                for stream in &mut streams {
                    let mut answer = Vec::new();
                    while !answer.ends_with(b"Hello, World!") {
                        let mut some = [0; 1000];
                        let n = match stream.read(&mut some) {
                            // As after a stop of the process, where a read has a limit.
                            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
                            read => read.unwrap(),
                        };
                        assert_ne!(n, 0, "{}", String::from_utf8_lossy(&answer));
                        answer.extend_from_slice(&some[..n]);
                    }
                }
            }
        });
        end();
    });
}

#[test]
fn echo_with_resets_and_half_closed_clients_is_replayed() {
    is_replayed("echo", "replay_echo", &[], &|addr, end| {
        clients(6, |number| {
            let mut dice = Dice(number);
            for round in 0..5 {
                let mut stream = connect(addr);
                let size = 1 + dice.roll(200_000) as usize;
                let sent = vec![b'a' + number as u8; size];
                thread::scope(|threads| {
                    let mut writer = stream.try_clone().unwrap();
                    threads.spawn(move || {
                        let _ = writer.write_all(&sent);
                        let _ = writer.shutdown(Shutdown::Write);
                    });
                    if round == 2 {
                        let _ = stream.read(&mut [0; 1000]);
                        reset(&stream);
                        let _ = stream.shutdown(Shutdown::Both);
                    } else {
                        let mut heard = Vec::new();
                        stream.read_to_end(&mut heard).unwrap();
                        assert_eq!(heard.len(), size);
                    }
                });
            }
        });
        end();
    });
}

#[test]
fn a_chat_is_replayed() {
    is_replayed("chat", "replay_chat", &[], &|addr, end| {
        clients(20, |number| {
            let mut stream = connect(addr);
            let mut dice = Dice(number);
            writeln!(stream, "client {number}").unwrap();
            let mut lines = BufReader::new(stream.try_clone().unwrap());
            for said in 0..10 {
                writeln!(stream, "line {said}").unwrap();
                for _ in 0..dice.roll(2) {
                    let mut line = String::new();
                    lines.read_line(&mut line).unwrap();
                }
            }
            if dice.roll(3) == 0 {
                reset(&stream);
            }
        });
        end();
    });
}

#[test]
fn messages_to_many_subscribers_and_expired_values_are_replayed() {
    is_replayed("redis", "replay_redis", &[], &|addr, end| {
        clients(10, |number| {
            let mut stream = connect(addr);
            let mut lines = BufReader::new(stream.try_clone().unwrap()).lines();
            stream.write_all(b"SUBSCRIBE c\r\n").unwrap();
            for said in 0..20 {
                let asked = format!("SET k{said} {number} PX 1\r\nGET k{said}\r\nPUBLISH c m\r\n");
                stream.write_all(asked.as_bytes()).unwrap();
            }
            // The last of its own replies, among the messages.
            let mut left = 20;
            while left > 0 {
                left -= u32::from(lines.next().unwrap().unwrap() == "+OK");
            }
        });
        end();
    });
}

#[test]
fn a_proxy_is_replayed_without_its_upstream() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let upstream = listener.local_addr().unwrap().to_string();
    thread::spawn(move || {
        for (number, stream) in listener.incoming().enumerate() {
            let mut stream = stream.unwrap();
            let mut some = [0; 1000];
            let n = stream.read(&mut some).unwrap_or(0);
            let _ = stream.write_all(&some[..n]);
            if number % 3 == 0 {
                reset(&stream);
            }
        }
    });
    is_replayed("proxy", "replay_proxy", &[&upstream], &|addr, end| {
        clients(6, |number| {
            for _ in 0..4 {
                let mut stream = connect(addr);
                stream.write_all(format!("from {number}").as_bytes()).unwrap();
                let _ = stream.shutdown(Shutdown::Write);
                let _ = stream.read_to_end(&mut Vec::new());
            }
        });
        end();
    });
}

/// One record of `echo` for all tests that need some record.
fn echoed(name: &str) -> (PathBuf, String) {
    static ONE: Mutex<()> = Mutex::new(());
    let _one = ONE.lock();
    let record_of = file(&format!("replay_{name}.record"));
    let trace = ["--trace", record_of.to_str().unwrap()];
    let log = record("echo", &record_of, &trace, &|addr, end| {
        let mut stream = connect(addr);
        stream.write_all(b"hello").unwrap();
        stream.read_exact(&mut [0; 5]).unwrap();
        end();
    });
    (record_of, log)
}

/// Replays. Returns the exit status, standard output and standard error.
fn ended(args: &[&str], record: &Path) -> (Option<i32>, String, String) {
    let mut command = Command::new(build("echo"));
    command.arg("--replay").arg(record).args(args);
    let output = child::output(&mut command);
    let text = |bytes: Vec<u8>| String::from_utf8(bytes).unwrap();
    (output.status.code(), text(output.stdout), text(output.stderr))
}

#[test]
fn a_replay_stops_at_a_line_with_the_table_of_tasks() {
    let (record, log) = echoed("until");
    let line = log.lines().find(|line| line.contains(" io       c1 write = 5")).unwrap();
    let number = line.split_ascii_whitespace().nth(2).unwrap();
    let trace = record.with_extension("until");
    let (code, out, _) = ended(&["--until", number, "--trace", trace.to_str().unwrap()], &record);
    assert_eq!(code, Some(0));
    assert!(out.starts_with(&format!("the replay has stopped at line {number}\n")), "{out}");
    assert!(out.contains(" conn-1 "), "{out}");
    assert_eq!(fs::read_to_string(trace).unwrap().lines().last(), Some(line));
    let (code, _, told) = ended(&["--until", "9999"], &record);
    let is_told = told.contains("error: the log of the replay ends at line #00");
    assert_eq!((code, is_told), (Some(1), true), "{told}");
}

#[test]
fn the_first_difference_is_told_with_its_place() {
    let (record, _) = echoed("differs");
    let text = fs::read_to_string(&record).unwrap();
    let differs = record.with_extension("differs");
    for (from, to, tells) in [
        (
            "<read ok 5 hello",
            "<read ok 5 hallo",
            "the program sends other bytes, in task 3, after ",
        ),
        ("<read ok 5 hello", "<peek ok", "the program asks for `read`, in task 3, after examples/"),
        ("<read ok 5 hello", "<read ok 5 he", "the program asks for `read` with less room, in "),
        ("<read ok 5 hello", "<read ok 99999 x", "the program asks for `read` with less room, in "),
        ("<read ok 5 hello", "<read", "the program asks for `read`, in task 3"),
        ("<read ok 5 hello", "<read error x", "the program asks for `read`, in task 3"),
        (" io       c1 read = 5", " io       c1 read = 6", "the log of the program has:\n"),
        ("<wait ok", "<wait ok x", "the program asks for `wait`"),
        ("<end\n", "<now 1\n<end\n", "the program asks for `end`"),
        ("drain: 10s", "drain: 9s", "the options of the program are:\n"),
    ] {
        let changed = text.replacen(from, to, 1);
        assert_ne!(text, changed, "{from}");
        fs::write(&differs, changed).unwrap();
        let (code, _, told) = ended(&[], &differs);
        assert_eq!(code, Some(1), "{told}");
        assert!(told.contains(tells), "{told}");
        let at = text.split(from).next().unwrap().lines().count();
        assert!(told.contains(" of the record has:\n  "), "{told}, about line {at}");
    }
    let (code, _, told) = ended(&["--drain", "1"], &record);
    assert_eq!((code, told.contains("the options of the program are:\n")), (Some(1), true));
}

#[test]
fn a_record_that_was_cut_off_is_replayed_to_its_end() {
    let (record, log) = echoed("cut");
    let bytes = fs::read(&record).unwrap();
    let cut = record.with_extension("cut");
    for part in [3, 5, 8] {
        fs::write(&cut, &bytes[..bytes.len() * part / 10]).unwrap();
        let trace = cut.with_extension("cut_trace");
        let (code, out, told) = ended(&["--trace", trace.to_str().unwrap()], &cut);
        assert_eq!(code, Some(0), "{told}");
        assert!(out.contains(" of the record ends:\n"), "{out}");
        assert!(log.starts_with(&fs::read_to_string(trace).unwrap()));
    }
    let mut command = Command::new(build("http"));
    let output = child::output(command.arg("--replay").arg(&record));
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(told.contains(": expected a record of http, found one of echo"), "{told}");
    assert_eq!(output.status.code(), Some(2));
    fs::write(&cut, "hello\n").unwrap();
    let (code, _, told) = ended(&[], &cut);
    assert_eq!((code, told.contains("this is no record")), (Some(2), true), "{told}");
}

#[test]
fn an_access_log_has_the_recorded_time_in_a_replay() {
    let path = file("replay_access.record");
    let (_, told) = record_and_tell("http", &path, &["--access-log"], &|addr, end| {
        let mut stream = connect(addr);
        stream.write_all(b"GET /plaintext HTTP/1.0\r\n\r\n").unwrap();
        stream.read_to_end(&mut Vec::new()).unwrap();
        end();
    });
    let access = |told: &str| {
        let line = told.lines().find(|line| line.contains("GET /plaintext"));
        line.unwrap_or_else(|| panic!("no line of the access log: {told}")).to_owned()
    };
    // The log has whole seconds.
    thread::sleep(Duration::from_millis(1100));
    let output = child::output(Command::new(build("http")).arg("--replay").arg(&path));
    let replayed = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(access(&replayed), access(&told));
}

#[test]
fn several_workers_are_not_recorded() {
    let mut command = Command::new(build("echo"));
    command.args(["--workers", "2", "--record"]).arg(file("workers.record"));
    let output = child::output(&mut command);
    let told = String::from_utf8_lossy(&output.stderr).into_owned();
    assert_eq!(
        (output.status.code(), told.contains("neither recorded nor replayed")),
        (Some(2), true)
    );
}
