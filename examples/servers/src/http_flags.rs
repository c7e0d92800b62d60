//! The command-line options of the HTTP server: one for each limit and each deadline, and some for
//! its routes.

use std::path::PathBuf;
use std::time::Duration;

use clap::{ArgAction, Args as _, Command, FromArgMatches as _};
use net::http::{Config, Deadlines, Limits};

use common::limits::{Limit, limit, span, switch};
use common::values::{self, Span, between};

/// The upper bound, in bytes, of the options that limit a head and its first line.
const HEAD: usize = 1 << 30;

/// The length of the shortest possible head, in bytes; the next constant is the length of its first
/// line.
const SHORTEST: usize = "GET / HTTP/1.0\r\n\r\n".len();
const SHORTEST_LINE: usize = "GET / HTTP/1.0".len();

/// The upper bound of each number of threads. The sum of all three numbers stays below the limit of
/// a kernel.
const THREADS: u64 = 1 << 14;

/// The command-line options of the HTTP server.
#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Paths")]
pub struct HttpFlags {
    /// Serve this directory below /files/
    #[arg(long, value_name = "DIR")]
    pub files: Option<PathBuf>,
    /// Threads that read files, of each worker
    #[arg(long, value_name = "N", default_value_t = 8, value_parser = between(1, THREADS))]
    pub file_threads: u64,
    /// Threads for /blocking, of each worker; others wait
    #[arg(long, value_name = "N", default_value_t = 16, value_parser = between(1, THREADS))]
    pub blocking_threads: u64,
    /// Dump what --flight keeps if a handler takes longer than TIME
    #[arg(long, value_name = "TIME", value_parser = values::millis, requires = "flight")]
    pub slow: Option<Duration>,
    /// Requests in /gate, of all workers; others are refused
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = between(1, THREADS))]
    pub gate: u64,
    // `help =`: in a doc comment rustdoc would take the brackets for a link.
    #[arg(long, help = "Log answers: PEER - - [TIME] \"REQUEST\" STATUS LENGTH; 499: left before")]
    pub access_log: bool,
    /// Serve /kernel, a page that shows what the kernel does
    #[arg(long)]
    pub kernel_page: bool,
    #[command(flatten)]
    limits: LimitFlags,
    #[command(flatten)]
    deadlines: DeadlineFlags,
}

#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Limits")]
struct LimitFlags {
    /// Bytes of a head, else 431
    #[arg(long, value_name = "N", default_value_t = Limits::default().head,
          value_parser = between(SHORTEST, HEAD))]
    limit_head: usize,
    /// Bytes of the first line of a head, else 414
    #[arg(long, value_name = "N", default_value_t = Limits::default().request_line,
          value_parser = between(SHORTEST_LINE, HEAD))]
    limit_request_line: usize,
    /// Field lines of a head, else 431
    #[arg(long, value_name = "N", default_value_t = Limits::default().fields,
          value_parser = between(1, Limits::default().fields))]
    limit_fields: usize,
    /// Bytes of a body, else 413
    #[arg(long, value_name = "N", default_value_t = Limits::default().body,
          value_parser = between(0, u64::MAX))]
    limit_body: u64,
    /// Bytes of an unread body, else the connection closes
    #[arg(long, value_name = "N", default_value_t = Limits::default().drain,
          value_parser = between(0, u64::MAX))]
    limit_drain: u64,
    /// Bytes of bodies and long heads, of each worker
    #[arg(long, value_name = "N", default_value_t = Limits::default().memory,
          value_parser = between(1, u64::MAX))]
    limit_memory: u64,
    /// Connections of each worker; then one ends, or 503
    #[arg(long, value_name = "N", default_value_t = Limits::default().connections,
          value_parser = between(1, usize::MAX))]
    limit_connections: usize,
    /// Requests of a connection, which then closes
    #[arg(long, value_name = "N", default_value_t = Limits::default().requests,
          value_parser = between(1, u64::MAX))]
    limit_requests: u64,
    /// Pipelined requests that are answered in one turn
    #[arg(long, value_name = "N", default_value_t = Limits::default().pipelined,
          value_parser = between(1, u32::MAX))]
    limit_pipelined: u32,
    /// Whether LF alone ends a line of a head
    #[arg(long, value_name = "on|off", default_value = "off", value_parser = values::switch,
          action = ArgAction::Set)]
    bare_lf: bool,
    /// Answer clients that have closed their sending side
    #[arg(long, value_name = "on|off", default_value = "off", value_parser = values::switch,
          action = ArgAction::Set)]
    half_close: bool,
}

#[derive(clap::Args, Clone, Debug)]
#[command(next_help_heading = "Deadlines, in milliseconds, or off")]
struct DeadlineFlags {
    /// For a whole head, then 408
    #[arg(long, value_name = "MS", default_value_t = Span(Deadlines::default().head),
          value_parser = Span::from(1))]
    deadline_head: Span,
    /// For each piece of a body
    #[arg(long, value_name = "MS", default_value_t = Span(Deadlines::default().body),
          value_parser = Span::from(1))]
    deadline_body: Span,
    /// Bytes a second of a body, at least
    #[arg(long, value_name = "N", default_value_t = Deadlines::default().body_rate,
          value_parser = between(0, u64::MAX))]
    deadline_body_rate: u64,
    /// Span over which that rate counts
    #[arg(long, value_name = "MS", default_value_t = Span(Deadlines::default().body_window),
          value_parser = Span::from(1))]
    deadline_body_window: Span,
    /// Time for a whole body in memory, or its answer
    #[arg(long, value_name = "MS", default_value_t = Span(Deadlines::default().body_whole),
          value_parser = Span::from(1))]
    deadline_body_whole: Span,
    /// For what a handler waits for, then 503
    #[arg(long, value_name = "MS", default_value_t = Span(Deadlines::default().handler),
          value_parser = Span::from(1))]
    deadline_handler: Span,
    /// For a peer to take some of an answer
    #[arg(long, value_name = "MS", default_value_t = Span(Deadlines::default().write),
          value_parser = Span::from(1))]
    deadline_write: Span,
    /// Bytes a second of an answer, at least
    #[arg(long, value_name = "N", default_value_t = Deadlines::default().write_rate,
          value_parser = between(0, u64::MAX))]
    deadline_write_rate: u64,
    /// Between two requests; 0 closes after each answer
    #[arg(long, value_name = "MS", default_value_t = Span(Deadlines::default().idle),
          value_parser = Span::from(0))]
    deadline_idle: Span,
    /// For a peer to close after the last answer
    #[arg(long, value_name = "MS", default_value_t = Span(Deadlines::default().linger),
          value_parser = Span::from(0))]
    deadline_linger: Span,
}

impl Default for HttpFlags {
    fn default() -> HttpFlags {
        let parsed = HttpFlags::augment_args(Command::new("http")).get_matches_from(["http"]);
        HttpFlags::from_arg_matches(&parsed).expect("each option has a default")
    }
}

impl HttpFlags {
    /// Returns the configuration of the server, as these options set it.
    pub fn config(&self) -> Config {
        let (limits, deadlines) = (&self.limits, &self.deadlines);
        let limits = Limits {
            head: limits.limit_head,
            request_line: limits.limit_request_line,
            fields: limits.limit_fields,
            body: limits.limit_body,
            drain: limits.limit_drain,
            memory: limits.limit_memory,
            connections: limits.limit_connections,
            requests: limits.limit_requests,
            pipelined: limits.limit_pipelined,
        };
        let deadlines = Deadlines {
            head: deadlines.deadline_head.0,
            body: deadlines.deadline_body.0,
            body_rate: deadlines.deadline_body_rate,
            body_window: deadlines.deadline_body_window.0,
            body_whole: deadlines.deadline_body_whole.0,
            handler: deadlines.deadline_handler.0,
            write: deadlines.deadline_write.0,
            write_rate: deadlines.deadline_write_rate,
            idle: deadlines.deadline_idle.0,
            linger: deadlines.deadline_linger.0,
        };
        let mut config = Config::new(limits, deadlines);
        config.bare_lf = self.limits.bare_lf;
        config.half_close = self.limits.half_close;
        config
    }

    /// Returns the largest number of threads that the paths use at a time.
    pub fn threads(&self) -> usize {
        let HttpFlags { file_threads, blocking_threads, gate, .. } = self;
        usize::try_from(file_threads + blocking_threads + gate).expect("each has a bound")
    }

    /// Returns the limits that these options set, for `--print-limits`.
    pub fn in_force(&self) -> Vec<Limit> {
        let Config { limits, deadlines, bare_lf, half_close, .. } = self.config();
        vec![
            limit("file-threads", self.file_threads, "threads"),
            limit("blocking-threads", self.blocking_threads, "threads"),
            limit("gate", self.gate, "requests"),
            limit("limit-head", limits.head, "bytes"),
            limit("limit-request-line", limits.request_line, "bytes"),
            limit("limit-fields", limits.fields, "fields"),
            limit("limit-body", limits.body, "bytes"),
            limit("limit-drain", limits.drain, "bytes"),
            limit("limit-memory", limits.memory, "bytes"),
            limit("limit-connections", limits.connections, "connections"),
            limit("limit-requests", limits.requests, "requests"),
            limit("limit-pipelined", limits.pipelined, "requests"),
            span("deadline-head", deadlines.head),
            span("deadline-body", deadlines.body),
            limit("deadline-body-rate", deadlines.body_rate, "bytes/s"),
            span("deadline-body-window", deadlines.body_window),
            span("deadline-body-whole", deadlines.body_whole),
            span("deadline-handler", deadlines.handler),
            span("deadline-write", deadlines.write),
            limit("deadline-write-rate", deadlines.write_rate, "bytes/s"),
            span("deadline-idle", deadlines.idle),
            span("deadline-linger", deadlines.linger),
            switch("bare-lf", bare_lf),
            switch("half-close", half_close),
        ]
    }
}
