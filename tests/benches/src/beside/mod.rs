//! trapline's servers next to those of its peers.

use crate::servers::{FLOOR, HTTP, How, SERVERS, SMALL, Server};

pub mod counts;
mod limits;
pub mod memory;
mod process;
pub mod speed;
pub mod wrk;

use crate::load::Kind;

/// A server, with deadlines or without.
#[derive(Clone, Copy)]
pub struct Target {
    pub server: &'static Server,
    pub deadlines: bool,
}

impl Target {
    pub fn name(&self) -> &'static str {
        if self.deadlines { self.server.limited } else { self.server.name }
    }

    fn is_floor(&self) -> bool {
        self.server.name == FLOOR && !self.deadlines
    }

    fn is_ours(&self) -> bool {
        [SMALL, HTTP].contains(&self.server.name)
    }
}

/// The requested measurements.
#[derive(Clone, Debug)]
pub struct Asked {
    pub quick: bool,
    /// A part of the figure's name.
    pub only: Option<String>,
    /// Names of servers, in addition to ours; empty for all.
    pub peers: Vec<String>,
}

impl Asked {
    pub fn wants(&self, figure: &str) -> bool {
        let is_named = |name: &str| WORKLOADS.iter().any(|load| load.name == name);
        self.only.as_deref().is_none_or(|part| match is_named(part) {
            true => figure == part,
            false => figure.contains(part),
        })
    }

    /// Those that can do it, without the floor.
    fn targets(&self, echo: bool) -> Vec<Target> {
        let asked = |server: &&Server| {
            let ours = OURS.iter().any(|(name, _)| *name == server.name);
            let named = ours || self.peers.iter().any(|name| name == server.name);
            (server.echoes || !echo) && (named || self.peers.is_empty())
        };
        let both = |server| [true, false].map(|deadlines| Target { server, deadlines });
        let found = SERVERS.iter().filter(asked).flat_map(both);
        found.filter(|target| !target.is_floor()).collect()
    }

    fn floor() -> Target {
        let server = SERVERS.iter().find(|server| server.name == FLOOR);
        Target { server: server.expect("the floor is a server"), deadlines: false }
    }
}

/// The workload of a figure.
#[derive(Clone, Copy)]
pub struct Workload {
    pub name: &'static str,
    pub kind: Kind,
    pub connections: usize,
}

impl Workload {
    fn how(&self, target: Target) -> How {
        How { deadlines: target.deadlines, echo: self.kind == Kind::Echo }
    }
}

const fn workload(name: &'static str, kind: Kind, connections: usize) -> Workload {
    Workload { name, kind, connections }
}

pub const WORKLOADS: &[Workload] = &[
    workload("keep-alive 1", Kind::Http, 1),
    workload("keep-alive 64", Kind::Http, 64),
    workload("keep-alive 256", Kind::Http, 256),
    workload("pipelined 16 deep, 64", Kind::Pipe, 64),
    workload("connection per request, 64", Kind::Close, 64),
    workload("echo 1", Kind::Echo, 1),
    workload("echo 64", Kind::Echo, 64),
    workload("echo 1000", Kind::Echo, 1000),
];

/// The names of trapline's two programs in a figure.
const OURS: [(&str, &str); 2] = [(SMALL, "(a)"), (HTTP, "(b)")];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ours_run_beside_the_peers_that_are_named() {
        let peers = vec!["tokio".to_owned(), "hyper".to_owned()];
        let asked = Asked { quick: true, only: None, peers };
        let names = |echo| asked.targets(echo).iter().map(Target::name).collect::<Vec<_>>();
        let all = ["trapline", "trapline-http", "tokio", "hyper"];
        let both = |all: &[&str]| {
            all.iter().flat_map(|name| [format!("{name} +d"), (*name).to_owned()]).collect()
        };
        let (http, echo): (Vec<String>, Vec<String>) = (both(&all), both(&["trapline", "tokio"]));
        assert_eq!((names(false), names(true)), (refs(&http), refs(&echo)));
    }

    #[test]
    fn a_whole_name_means_that_figure_and_no_longer_one() {
        let wanted = |part: &str| {
            let asked = Asked { quick: true, only: Some(part.to_owned()), peers: Vec::new() };
            WORKLOADS.iter().filter(|load| asked.wants(load.name)).map(|load| load.name).collect()
        };
        let (one, all): (Vec<&str>, Vec<&str>) = (wanted("echo 1"), wanted("echo"));
        assert_eq!((one, all), (vec!["echo 1"], vec!["echo 1", "echo 64", "echo 1000"]));
    }

    fn refs(all: &[String]) -> Vec<&str> {
        all.iter().map(String::as_str).collect()
    }
}
