//! Counts of the kernel as text for Prometheus: its text format, version 0.0.4.

use std::fmt::Write as _;

use kernel::trace::Event;

use super::board::Board;

/// The media type of the format.
pub const TYPE: &str = "text/plain; version=0.0.4; charset=utf-8";

/// Counts since the kernel began. A task that serves the page counts as ended from then on.
#[derive(Debug, Default)]
pub struct Totals {
    started: u64,
    ended: u64,
    runs: u64,
    fired: u64,
    arrived: u64,
}

impl Totals {
    pub fn hide(&mut self, is_known: bool) {
        self.ended += u64::from(is_known);
    }

    pub fn event(&mut self, event: &Event<'_>) {
        let total = match event {
            Event::Spawn { .. } => &mut self.started,
            Event::Exit { .. } => &mut self.ended,
            Event::Run { .. } => &mut self.runs,
            Event::Fire { .. } => &mut self.fired,
            Event::Arrive(_) => &mut self.arrived,
            _ => return,
        };
        *total += 1;
    }
}

/// Returns the metrics of a worker's kernel. `cpu` is the CPU time of its thread in microseconds,
/// if the system reports it.
pub fn text(board: &Board, worker: &str, cpu: Option<u64>) -> String {
    let mut text = String::new();
    let mut family = |name: &str, kind: &str, help: &str, samples: &[(&str, f64)]| {
        let _ = writeln!(text, "# HELP trapline_{name} {help}\n# TYPE trapline_{name} {kind}");
        for (labels, value) in samples {
            let _ = writeln!(text, "trapline_{name}{{worker=\"{worker}\"{labels}}} {value}");
        }
    };
    let states = ["running", "ready", "parked"].map(|state| {
        let tasks = board.tasks.values().filter(|task| task.state == state).count();
        (format!(",state=\"{state}\""), tasks as f64)
    });
    let states = states.each_ref().map(|(labels, tasks)| (labels.as_str(), *tasks));
    family("tasks", "gauge", "Living tasks.", &states);
    let Totals { started, ended, runs, fired, arrived } = board.totals;
    for (name, help, total) in [
        ("tasks_started_total", "Tasks that were spawned.", started),
        ("tasks_ended_total", "Tasks that have ended.", ended),
        ("task_runs_total", "Times that a task got the CPU.", runs),
        ("timers_fired_total", "Timers that have fired.", fired),
        ("arrivals_total", "Signals, and events of descriptors.", arrived),
        ("log_events_total", "Events of the kernel's log.", board.count),
    ] {
        family(name, "counter", help, &[("", total as f64)]);
    }
    if let Some(micros) = cpu {
        let help = "CPU time of the kernel's thread.";
        family("thread_cpu_seconds_total", "counter", help, &[("", micros as f64 / 1e6)]);
    }
    family("pages", "gauge", "Open pages that show this kernel.", &[("", board.viewers as f64)]);
    text
}
