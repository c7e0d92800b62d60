//! The reasons why a row of the servers is not better, in short; the guide's page on speed has the
//! details.

use super::{Target, Workload};
use crate::load::Kind;
use crate::servers::HTTP;

/// Of requests per second.
pub fn of_rate(load: &Workload) -> &'static str {
    match load.kind {
        Kind::Http | Kind::Echo if load.connections == 1 => "each side wakes the other",
        Kind::Http | Kind::Echo => "the system's recv and send",
        Kind::Pipe => "parsing and answering",
        Kind::Close => "the load, which connects",
    }
}

/// Names what limits the CPU of the server.
pub fn of_cpu(load: &Workload) -> &'static str {
    match load.kind {
        Kind::Http | Kind::Echo if load.connections == 1 => "the system's epoll_wait, recv, send",
        Kind::Http | Kind::Echo => "the system's recv and send",
        Kind::Pipe => "parsing and answering",
        Kind::Close => "the system's accept and close",
    }
}

/// Of instructions in user space.
pub fn of_instructions(target: Target, load: &Workload) -> &'static str {
    let checks = target.server.name == HTTP;
    match load.kind {
        Kind::Pipe if checks => "the head's checks, the answer",
        Kind::Pipe => "the parser, the answer",
        Kind::Close => "a task made and dropped",
        Kind::Http | Kind::Echo if checks && target.deadlines => "the wait, its guard, the checks",
        Kind::Http | Kind::Echo if checks => "the wait, the checks",
        Kind::Http | Kind::Echo if target.deadlines => "the wait, two arms of the deadline",
        Kind::Http | Kind::Echo => "the wait",
    }
}

/// Of system calls.
pub fn of_calls(load: &Workload) -> &'static str {
    match load.kind {
        Kind::Http | Kind::Echo if load.connections == 1 => "epoll_wait, recv, send",
        Kind::Http | Kind::Echo => "recv, send, a part of an epoll_wait",
        Kind::Pipe => "a recv and a send for all 16",
        Kind::Close => "accept, recv, send, close",
    }
}
