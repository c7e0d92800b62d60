//! The observer of the guide's recipe *The log in `tracing`*, unchanged.

use kernel::Activation;
use kernel::trace::{Event, Line};
use tracing::{debug, trace, warn};

/// Passes each event of the kernel to `tracing`.
#[derive(Debug)]
pub struct ToTracing;

impl Activation for ToTracing {
    fn event(&mut self, line: &Line<'_>) {
        let Line { task, seq, event, .. } = line;
        let (verb, cause) = (event.verb(), event.cause());
        match event {
            Event::Warn { .. } | Event::Panic { .. } | Event::Longrun { .. } => {
                warn!(target: "kernel", task, name = %line.name, seq, verb, cause, "{event}");
            }
            Event::Spawn { .. } | Event::Exit { .. } | Event::Cancel { .. } => {
                debug!(target: "kernel", task, name = %line.name, seq, verb, cause, "{event}");
            }
            _ => trace!(target: "kernel", task, name = %line.name, seq, verb, cause, "{event}"),
        }
    }
}
