//! A cross-check by another load generator.

use std::io;

use super::process::Process;
use super::{Asked, Target};
use crate::servers::How;
use crate::tied;

/// Lines of a table: requests per second by `wrk`, 64 connections, one run each.
///
/// # Errors
///
/// Returns an error if there is no `wrk` or a server does not start.
pub fn table(asked: &Asked) -> io::Result<String> {
    let mut text = String::from("\n## wrk, 64 connections\n\n| server | requests/s |\n|---|---|\n");
    let mut targets = asked.targets(false);
    targets.insert(0, Asked::floor());
    let seconds = if asked.quick { "1s" } else { "5s" };
    for target in targets {
        let rate = rate(target, seconds)?;
        text += &format!("| {} | {rate} |\n", target.name());
    }
    Ok(text)
}

fn rate(target: Target, seconds: &str) -> io::Result<String> {
    let process = Process::start(target, How { deadlines: target.deadlines, echo: false })?;
    let url = format!("http://{}/plaintext", process.addr);
    // On the core of our own load: this process was pinned there, and wrk inherits it.
    let out = tied::command("wrk")?.args(["-t", "1", "-c", "64", "-d", seconds, &url]).output()?;
    let text = String::from_utf8_lossy(&out.stdout).into_owned();
    let rate = text.lines().find_map(|line| line.trim().strip_prefix("Requests/sec:"));
    rate.map(|rate| rate.trim().to_owned()).ok_or_else(|| io::Error::other(text))
}
