//! The small servers as a user runs them: they print their address, send everything back, leave a
//! sound trace, and end at a signal. Also the listeners that the parent of a server can pass to it.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream, UdpSocket};
use std::os::fd::OwnedFd;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use net::{Inherited, inherited_listeners};
use testing::child::{self, Child};
use testing::trace;

use support::examples::build;

/// A separate path for each test, at which nothing exists.
fn path(name: &str) -> PathBuf {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_file(&path);
    path
}

/// Starts an example, and reads its address.
fn start(name: &str, args: &[&str], trace: &Path) -> (Child, String) {
    let mut command = Command::new(build(name));
    command.args(args).arg("--trace").arg(trace);
    let mut process = child::spawn(command.stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(process.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let place = line.trim_end().strip_prefix("listening on ").expect("it says where it listens");
    (process, place.to_owned())
}

/// Sends a signal, and checks that the server ends with code 0 and a sound trace. Returns the
/// trace.
fn stop(mut process: Child, trace: &Path) -> String {
    process.send("TERM");
    assert!(process.wait().unwrap().success());
    let text = fs::read_to_string(trace).unwrap();
    trace::check(&trace::trace(&text).unwrap())
        .unwrap_or_else(|broken| panic!("{broken:?}\n{text}"));
    assert!(text.lines().last().unwrap().contains("halt     tasks=0 tickets=0 timers=0 handles=0"));
    text
}

#[test]
fn udp_echo_sends_back_each_datagram_to_its_sender() {
    let trace = path("udp_echo.trace");
    let (process, addr) = start("udp_echo", &["--addr", "127.0.0.1:0"], &trace);
    let clients = ["127.0.0.1:0"; 2].map(|any| UdpSocket::bind(any).unwrap());
    let mut buf = [0; 100];
    for text in ["one", "", "three"] {
        for client in &clients {
            client.send_to(text.as_bytes(), &addr).unwrap();
        }
        for client in &clients {
            let (n, from) = client.recv_from(&mut buf).unwrap();
            assert_eq!((&buf[..n], from.to_string()), (text.as_bytes(), addr.clone()));
        }
    }
    let trace = stop(process, &trace);
    // Each is in the log with its length, in both directions.
    for (direction, bytes) in [("read", 3), ("write", 3), ("read", 0), ("write", 5)] {
        let line = format!(" io       f1 {direction} = {bytes}\n");
        assert_eq!(trace.matches(&line).count(), 2, "{line}{trace}");
    }
}

#[test]
fn unix_echo_serves_clients_at_a_path_and_removes_it_at_the_end() {
    let (trace, socket) = (path("unix_echo.trace"), path("unix_echo.socket"));
    let args = ["--path", socket.to_str().unwrap()];
    let (process, place) = start("unix_echo", &args, &trace);
    assert_eq!(place, args[1]);
    let idle = UnixStream::connect(&socket).unwrap();
    let mut busy = UnixStream::connect(&socket).unwrap();
    for text in ["one", "two"] {
        busy.write_all(text.as_bytes()).unwrap();
        let mut back = [0; 3];
        busy.read_exact(&mut back).unwrap();
        assert_eq!(back, text.as_bytes());
    }
    busy.shutdown(Shutdown::Write).unwrap();
    assert_eq!(busy.read_to_end(&mut Vec::new()).unwrap(), 0);
    let trace = stop(process, &trace);
    drop(idle);
    assert!(!socket.exists());
    for line in ["accept   l1 = c1\n", "accept   l1 = c2\n", "io       c2 read = 3\n"] {
        assert!(trace.contains(line), "{line}{trace}");
    }
}

// ---- Inherited listeners ------------------------------------------------------------------------

/// Runs [`a_server_that_is_given_its_listeners`] in a separate process, with these as its
/// descriptors 3 and 4. Returns the process; its standard error reports how it ended.
fn give(three: OwnedFd, four: OwnedFd, variables: &str) -> Child {
    let script = format!("exec 3<&0 4>&1 </dev/null >&2; {variables} exec \"$0\" \"$@\"");
    let mut shell = Command::new("sh");
    shell.args(["-c", &script]).arg(std::env::current_exe().unwrap());
    let test = child::test_in(module_path!(), "a_server_that_is_given_its_listeners");
    shell.args(["--exact", &test, "--ignored", "--nocapture"]);
    child::spawn(shell.stdin(three).stdout(four).stderr(Stdio::piped()))
}

fn said(process: Child) -> String {
    String::from_utf8(process.wait_with_output().stderr).unwrap()
}

/// Greets one client at each listener, or reports the error.
#[test]
#[ignore = "it is for the tests below, which start it"]
fn a_server_that_is_given_its_listeners() {
    let given = match inherited_listeners() {
        Ok(given) => given,
        Err(error) => return eprintln!("said: {error}."),
    };
    for number in 3..3 + given.len() {
        let info = fs::read_to_string(format!("/proc/self/fdinfo/{number}")).unwrap();
        let flags = info.lines().find_map(|line| line.strip_prefix("flags:")).unwrap();
        let flags = u32::from_str_radix(flags.trim(), 8).unwrap();
        eprintln!("close-on-exec and non-blocking: {}", flags & 0o2_004_000 == 0o2_004_000);
    }
    eprintln!("a second call gives {}", inherited_listeners().unwrap().len());
    let main = async {
        for listener in given {
            match listener {
                Inherited::Tcp(mut tcp) => {
                    tcp.accept().await.unwrap().0.write_all(b"by TCP").await.unwrap();
                }
                Inherited::Unix(mut unix) => {
                    unix.accept().await.unwrap().0.write_all(b"by a path").await.unwrap();
                }
                other => panic!("a listener of a third kind: {other:?}"),
            }
        }
    };
    kernel::run(main).unwrap();
}

#[test]
fn listeners_are_inherited_in_order_and_belong_to_this_process_alone() {
    let (tcp, socket) = (TcpListener::bind("127.0.0.1:0").unwrap(), path("inherited.socket"));
    let unix = UnixListener::bind(&socket).unwrap();
    let mut clients = (TcpStream::connect(tcp.local_addr().unwrap()).unwrap(), String::new());
    let mut by_path = (UnixStream::connect(&socket).unwrap(), String::new());
    let process = give(tcp.into(), unix.into(), "LISTEN_FDS=2 LISTEN_PID=$$");
    clients.0.read_to_string(&mut clients.1).unwrap();
    by_path.0.read_to_string(&mut by_path.1).unwrap();
    let said = said(process);
    assert_eq!((&*clients.1, &*by_path.1), ("by TCP", "by a path"), "{said}");
    assert_eq!(said.matches("close-on-exec and non-blocking: true\n").count(), 2, "{said}");
    assert!(said.contains("a second call gives 0\n"), "{said}");
}

#[test]
fn what_is_wrong_with_an_inherited_listener_is_said() {
    let listener = || OwnedFd::from(TcpListener::bind("127.0.0.1:0").unwrap());
    let file = || OwnedFd::from(fs::File::open("/dev/null").unwrap());
    let connected = OwnedFd::from(UnixStream::pair().unwrap().0);
    let udp = OwnedFd::from(UdpSocket::bind("127.0.0.1:0").unwrap());
    let ours = "LISTEN_FDS=2 LISTEN_PID=$$";
    for (four, variables, wanted) in [
        (file(), ours, "fd 4 is not a socket."),
        (connected, ours, "descriptor 4 does not listen."),
        (udp, ours, "fd 4 is not a valid unix stream socket."),
        (file(), "LISTEN_FDS=3 LISTEN_PID=$$", "fd 4 is not a socket."),
        (listener(), "LISTEN_FDS=3 LISTEN_PID=$$", "fd 5 is not a socket."),
        (listener(), "LISTEN_FDS=2 LISTEN_PID=1", "said: LISTEN_PID is `1`, not "),
        (listener(), "LISTEN_FDS=2 LISTEN_PID=", "said: LISTEN_PID is ``, not "),
        (file(), "LISTEN_PID=1", "a second call gives 0"),
    ] {
        let said = said(give(listener(), four, variables));
        assert!(said.contains(wanted), "{wanted}: {said}");
    }
}
