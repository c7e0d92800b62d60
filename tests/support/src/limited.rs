//! A server that is the calling test itself, run again in a process with few descriptors.

use std::io::{BufRead, BufReader, Lines};
use std::process::{ChildStdout, Command, Stdio};

use testing::child::{self, Child};

/// Set in the process of the server.
const SERVER: &str = "TRAPLINE_LIMITED_SERVER";

/// Returns whether this is the process with few descriptors.
pub fn is_server() -> bool {
    std::env::var_os(SERVER).is_some()
}

/// Starts the calling test again with that limit. Returns its output after the line with its
/// address, and the address.
pub fn start(limit: u32) -> (Child, Lines<BufReader<ChildStdout>>, String) {
    let (test, mut command) = (child::this_test(), Command::new("sh"));
    command
        .args(["-c", &format!("ulimit -n {limit} && exec \"$0\" --exact {test} --nocapture")])
        .arg(std::env::current_exe().unwrap())
        .env(SERVER, "1")
        .stdout(Stdio::piped());
    let mut server = child::spawn(&mut command);
    let mut lines = BufReader::new(server.stdout.take().unwrap()).lines();
    let addr =
        lines.find_map(|line| line.unwrap().strip_prefix("listening on ").map(str::to_owned));
    (server, lines, addr.expect("the server says where it listens"))
}
