//! `bench counts redis-beside`: the `redis` example compared with the same program on tokio.
//!
//! 50 connections ask for one key, with one request in a write and with 16. Instructions are the
//! difference of two lengths. CPU is measured in pairs of rounds, one of each server, and the table
//! has the median of their ratios.

use super::drive::{Talk, Work};
use super::probes::this_program_serves;
use super::server::{Server, cpu_nanos};
use super::tools::Tool;
use crate::servers::REDIS;
use crate::{out, sys};

const CONNECTIONS: usize = 50;
const PAIRS: usize = 11;

fn work(depth: usize, rounds: usize) -> Work {
    Work { talk: Talk::Redis, connections: CONNECTIONS, depth, rounds }
}

fn instructions(server: &Server, depth: usize) -> Result<f64, String> {
    let (few, many) = (10, 40);
    let count = |rounds| server.count(Tool::Callgrind, &work(depth, rounds));
    let more = count(many)?.all.saturating_sub(count(few)?.all);
    Ok(more as f64 / (CONNECTIONS * depth * (many - few)) as f64)
}

fn median(mut values: Vec<f64>) -> f64 {
    values.sort_by(f64::total_cmp);
    values[values.len() / 2]
}

/// Measures both, and prints a table.
pub fn beside() -> Result<bool, String> {
    let [ours, tokio] = REDIS.map(this_program_serves);
    let (mut ours, mut tokio) = (ours?, tokio?);
    out::say("GET                      ours    tokio  ours/tokio\n")?;
    for depth in [1, 16] {
        let [a, b] = [instructions(&ours, depth)?, instructions(&tokio, depth)?];
        out::say(&format!("-P {depth:<2} instructions {a:>9.0}{b:>9.0}{:>12.3}\n", a / b))?;
    }
    let core = (sys::cores() - 1).to_string();
    for server in [&mut ours, &mut tokio] {
        server.args.extend(["--core".to_owned(), core.clone()]);
    }
    for depth in [1, 16] {
        let work = work(depth, 1200 / depth);
        let requests = (CONNECTIONS * depth * work.rounds) as f64;
        let cpu = |server| -> Result<f64, String> {
            let nanos = cpu_nanos(server, &work).map_err(|error| error.to_string())?;
            Ok(nanos as f64 / requests)
        };
        let pairs = (0..PAIRS).map(|_| Ok([cpu(&ours)?, cpu(&tokio)?]));
        let pairs = pairs.collect::<Result<Vec<_>, String>>()?;
        let each = |of: fn(&[f64; 2]) -> f64| median(pairs.iter().map(of).collect());
        let [a, b, ratio] = [each(|pair| pair[0]), each(|pair| pair[1]), each(|p| p[0] / p[1])];
        out::say(&format!("-P {depth:<2} CPU, ns       {a:>9.0}{b:>9.0}{ratio:>12.3}\n"))?;
    }
    Ok(true)
}
