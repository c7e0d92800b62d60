//! The command line of `bench`: the refused words, their errors, and a server. Nothing is measured.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::time::Duration;

use rustix::net::sockopt::set_socket_linger;
use rustix::process::{Pid, Signal, kill_process};
use testing::child;

fn bench(words: &[&str]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    child::output(command.args(words))
}

/// The error for refused words.
fn refusal(words: &[&str]) -> String {
    let output = bench(words);
    let error = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{words:?} is green");
    assert!(output.stdout.is_empty(), "{words:?} prints a table");
    assert!(!error.contains("panicked"), "{words:?}: {error}");
    error
}

/// A folder of one test.
struct Folder(PathBuf);

impl Folder {
    fn new(test: &str) -> Folder {
        let path = Path::new(env!("CARGO_TARGET_TMPDIR")).join(test);
        let _ = fs::remove_dir_all(&path);
        fs::create_dir_all(&path).unwrap();
        Folder(path)
    }

    fn file(&self, name: &str) -> String {
        self.0.join(name).to_str().unwrap().to_owned()
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        let _ = fs::remove_dir_all(&self.0);
    }
}

#[test]
fn a_word_that_matches_nothing_is_named_and_the_last_json_stays() {
    let folder = Folder::new("matches_nothing");
    let json = folder.file("bench.json");
    fs::write(&json, "before").unwrap();
    for (words, list) in [
        (&["--only", "nosuch", "--json", &json][..], "bench figures"),
        (&["micro", "nosuch"], "bench micro cases"),
        (&["counts", "nosuch"], "bench counts --list"),
        (&["counts", "--write", "nosuch"], "bench counts --list"),
    ] {
        let error = refusal(words);
        assert!(error.contains("`nosuch`") && error.contains(list), "{words:?}: {error}");
    }
    assert_eq!(fs::read_to_string(&json).unwrap(), "before");
}

#[test]
fn what_is_unknown_or_too_much_is_refused_by_name() {
    for (words, named) in [
        (&["--nosuch"][..], "`--nosuch`"),
        (&["nosuch"], "`nosuch`"),
        (&["--peers", "nosuch"], "`nosuch`; there are trapline, "),
        (&["serve", "nosuch"], "`nosuch`; there are trapline, "),
        (&["serve", "epoll", "--addr", "localhost:80"], "127.0.0.1:8080, not `localhost:80`"),
        (&["serve", "epoll", "--core", "4000"], "expected a core, 0 to "),
        (&["load", "127.0.0.1:1", "--connections", "0"], "1 or more, not `0`"),
        (&["load", "127.0.0.1:1", "--requests", "0"], "1 or more, not `0`"),
        (&["load", "127.0.0.1:1", "--kind", "nosuch"], "pipe, close or echo, not `nosuch`"),
        (&["load", "127.0.0.1:1"], "127.0.0.1:1: "),
        (&["micro", "--nosuch"], "`--nosuch`"),
        (&["micro", "--quick", "--json", "yield", "block"], "`block`"),
        (&["micro", "trapline", "answer:3", "10"], "a depth of [1, 2, 5, 10], not 3"),
        (&["micro", "trapline", "spawn_join:0", "10"], "1 or more, not 0"),
        (&["counts", "clock", "answer"], "`answer`"),
        (&["micro", "trapline", "answer", "0"], "a count of 1 or more, not 0"),
        (&["counts", "--list", "answer"], "alone"),
        (&["figures", "nosuch"], "`nosuch`"),
    ] {
        let error = refusal(words);
        assert!(error.contains(named), "{words:?}: {error}");
    }
}

#[test]
fn a_place_for_the_json_that_cannot_be_written_is_known_at_once() {
    let folder = Folder::new("no_place");
    let json = folder.file("none/bench.json");
    assert!(refusal(&["--only", "echo 1", "--json", &json]).contains(&json));
}

#[test]
fn a_tool_that_is_missing_is_known_at_once_and_the_last_json_stays() {
    let folder = Folder::new("no_tools");
    let json = folder.file("bench.json");
    fs::write(&json, "before").unwrap();
    for (words, tools) in [
        (&["--counts-only", "--json", &json][..], "valgrind strace"),
        (&["--wrk", "--json", &json], "wrk"),
        (&["counts", "clock"], "valgrind strace util-linux"),
    ] {
        let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
        let output = child::output(command.args(words).env("PATH", &folder.0));
        let error = String::from_utf8(output.stderr).unwrap();
        assert!(!output.status.success(), "{words:?} is green");
        assert!(error.contains(&format!("install the packages: {tools}\n")), "{error}");
    }
    assert_eq!(fs::read_to_string(&json).unwrap(), "before");
}

#[test]
fn every_command_has_the_help() {
    let help = bench(&["--help"]).stdout;
    assert!(help.starts_with(b"bench "));
    for command in ["serve", "load", "micro", "counts"] {
        for word in ["--help", "-h", "help"] {
            assert_eq!(bench(&[command, word]).stdout, help, "{command} {word}");
        }
    }
    for words in [&["help"][..], &["help", "counts"], &["-h"]] {
        assert_eq!(bench(words).stdout, help, "{words:?}");
    }
}

#[test]
fn what_can_be_named_is_listed() {
    for (words, name) in [
        (&["figures"][..], "idle keep-alive connection"),
        (&["micro", "cases"], "yield:1 yield, 1 task"),
        (&["counts", "--list"], "clock.instructions"),
    ] {
        let listed = String::from_utf8(bench(words).stdout).unwrap();
        assert!(listed.contains(name), "{words:?}: {listed}");
    }
}

#[test]
fn a_reader_that_goes_away_ends_it_in_silence_and_a_full_device_is_an_error() {
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    let (reader, writer) = std::io::pipe().unwrap();
    drop(reader);
    command.args(["micro", "cases"]).stderr(Stdio::piped());
    let output = child::spawn(command.stdout(writer)).wait_with_output();
    assert_eq!(String::from_utf8_lossy(&output.stderr), "");
    let full = fs::File::options().write(true).open("/dev/full").unwrap();
    let output = child::spawn(command.stdout(full)).wait_with_output();
    assert!(!output.status.success());
    let error = String::from_utf8_lossy(&output.stderr).into_owned();
    assert!(error.contains("standard output: ") && !error.contains("panicked"), "{error}");
}

#[test]
fn what_is_tied_ends_with_its_parent() {
    // A shell that is killed, between this process and the one that is tied to it.
    let script = r#"exec 3<&0
        "$0" tied $$ sh -c 'echo ready; read line; echo outlived' <&3 &
        wait"#;
    let mut command = Command::new("sh");
    command.args(["-c", script, env!("CARGO_BIN_EXE_bench")]);
    let mut shell = child::spawn(command.stdin(Stdio::piped()).stdout(Stdio::piped()));
    let (mut input, output) = (shell.stdin.take().unwrap(), shell.stdout.take().unwrap());
    let mut lines = BufReader::new(output).lines();
    assert_eq!(lines.next().unwrap().unwrap(), "ready");
    shell.kill().unwrap();
    shell.wait().unwrap();
    // There may be no reader.
    let _ = input.write_all(b"go on\n");
    assert!(lines.next().is_none(), "it outlived its parent");
    assert!(refusal(&["tied", "0", "true"]).contains("has ended"));
}

#[test]
fn what_could_not_be_written_to_one_client_is_not_sent_to_the_next() {
    let words = ["serve", "trapline", "--addr", "127.0.0.1:0"];
    let mut command = Command::new(env!("CARGO_BIN_EXE_bench"));
    let mut server = child::spawn(command.args(words).stdout(Stdio::piped()));
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let ask = || {
        let mut stream = TcpStream::connect(line.trim().strip_prefix("listening on ").unwrap())?;
        stream.write_all(b"GET /plaintext HTTP/1.1\r\nConnection: close\r\n\r\n")?;
        stream.set_read_timeout(Some(Duration::from_secs(20)))?;
        Ok::<TcpStream, std::io::Error>(stream)
    };
    let answers = (|| {
        let pid = Pid::from_child(&server);
        kill_process(pid, Signal::STOP)?;
        // It asks and resets, so its request is still unread.
        set_socket_linger(ask()?, Some(Duration::ZERO))?;
        kill_process(pid, Signal::CONT)?;
        let mut text = String::new();
        ask()?.read_to_string(&mut text)?;
        Ok::<usize, std::io::Error>(text.matches("HTTP/1.1 200").count())
    })();
    server.kill().unwrap();
    server.wait().unwrap();
    assert_eq!(answers.unwrap(), 1);
}
