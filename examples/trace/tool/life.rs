//! `task`, `tasks`, `idle` and `slow`: what tasks did with their time.

use std::fmt::Write as _;
use std::time::Duration;

use kernel::trace::Span;
use testing::trace::span;
use traps::Time;

use super::model::{Piece, State, Task, Trace, is_primitive, wait_in_words};
use super::stuck::Stuck;
use super::style::Paint;
use super::tables::Table;

/// How long a task ran, was ready and was blocked.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Shares {
    /// It had the CPU.
    pub run: Duration,
    /// It waited for the CPU.
    pub ready: Duration,
    /// It waited for something else.
    pub blocked: Duration,
}

impl Shares {
    /// Of a task, from its first line to its end, or to that of the trace.
    pub fn of(trace: &Trace, task: &Task) -> Shares {
        let mut shares = Shares::default();
        for piece in &task.pieces {
            *match piece.state {
                State::Run => &mut shares.run,
                State::Ready => &mut shares.ready,
                State::Blocked => &mut shares.blocked,
            } += trace.length(piece);
        }
        shares
    }

    /// The three together.
    pub fn total(&self) -> Duration {
        self.run + self.ready + self.blocked
    }

    /// In tenths of a percent, which are 1,000 together. A life that took no time counts as run.
    pub fn permille(&self) -> [u64; 3] {
        let micros = |span: Duration| span.as_micros() as u64;
        let total = micros(self.total());
        if total == 0 {
            return [1000, 0, 0];
        }
        let part = |span| (u128::from(micros(span)) * 1000 / u128::from(total)) as u64;
        let mut parts = [part(self.run), part(self.ready), part(self.blocked)];
        // What rounding left over goes to the largest.
        let missing = 1000 - parts.iter().sum::<u64>();
        *parts.iter_mut().max().expect("there are three") += missing;
        parts
    }
}

/// `12.3%`
pub fn percent(permille: u64) -> String {
    format!("{}.{}%", permille / 10, permille % 10)
}

/// By what `tasks` sorts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Order {
    /// By number.
    Id,
    /// By name.
    Name,
    /// The longest time on the CPU first.
    Run,
    /// The longest time waiting for the CPU first.
    Ready,
    /// The longest time blocked first.
    Blocked,
    /// The most runs first.
    Runs,
}

fn runs(task: &Task) -> usize {
    task.pieces.iter().filter(|piece| piece.state == State::Run).count()
}

/// All tasks, a row each.
pub fn tasks(trace: &Trace, order: Order, paint: Paint) -> String {
    let mut rows: Vec<_> =
        trace.tasks.values().map(|task| (task, Shares::of(trace, task), runs(task))).collect();
    match order {
        Order::Id => {}
        Order::Name => rows.sort_by(|a, b| a.0.name.cmp(&b.0.name)),
        Order::Run => rows.sort_by_key(|row| std::cmp::Reverse(row.1.run)),
        Order::Ready => rows.sort_by_key(|row| std::cmp::Reverse(row.1.ready)),
        Order::Blocked => rows.sort_by_key(|row| std::cmp::Reverse(row.1.blocked)),
        Order::Runs => rows.sort_by_key(|row| std::cmp::Reverse(row.2)),
    }
    let mut table =
        Table::new(&["id", "name", "state", "runs", "run", "ready", "blocked", "spawned at"]);
    for (task, shares, runs) in rows {
        let spawned = task.lines.first().and_then(|place| trace.lines[*place].key("at"));
        table.row([
            task.id.to_string(),
            task.name.clone(),
            state(trace, task),
            runs.to_string(),
            Span(shares.run).to_string(),
            Span(shares.ready).to_string(),
            Span(shares.blocked).to_string(),
            spawned.unwrap_or("-").to_owned(),
        ]);
    }
    table.show(paint)
}

/// What a task does at the end of the trace.
fn state(trace: &Trace, task: &Task) -> String {
    if task.ended {
        return "ended".to_owned();
    }
    match task.pieces.last() {
        Some(piece) if piece.state == State::Blocked => {
            let block = &trace.lines[piece.from];
            let words = is_primitive(block).then(|| wait_in_words(block));
            format!("in {}", words.as_deref().unwrap_or(block.word(0)))
        }
        Some(piece) if piece.state == State::Ready => "ready".to_owned(),
        _ => "running".to_owned(),
    }
}

/// One task's life: the shares of its time, and its lines.
pub fn task(trace: &Trace, task: &Task, paint: Paint) -> String {
    let shares = Shares::of(trace, task);
    let [run, ready, blocked] = shares.permille().map(percent);
    let head = format!("task {} `{}`: {}", task.id, task.name, state(trace, task));
    let mut text = paint.strong(&head) + "\n";
    let times = [
        ("run", shares.run, run),
        ("ready", shares.ready, ready),
        ("blocked", shares.blocked, blocked),
    ];
    for (name, span, share) in times {
        let _ = writeln!(text, "  {name:<8} {:>12} {share:>7}", Span(span).to_string());
    }
    let _ = writeln!(text, "  {:<8} {:>12}\n", "in all", Span(shares.total()).to_string());
    for place in &task.lines {
        let line = &trace.lines[*place];
        let _ = writeln!(text, "{}", paint.line(line, &line.to_string()));
    }
    text
}

/// Who has waited longest at the end of the trace, with the tasks that wait for each other, and
/// which waits were the longest before: each with what it was for.
pub fn idle(trace: &Trace, most: usize, paint: Paint) -> String {
    let tasks = trace.tasks.values().filter(|task| task.name != "wakeup");
    let waits = tasks.flat_map(|task| {
        let blocked = task.pieces.iter().filter(|piece| piece.state == State::Blocked);
        blocked.map(move |piece| {
            let last = task.pieces.last().is_some_and(|last| last.from == piece.from);
            (task, *piece, last && !task.ended)
        })
    });
    let (mut now, mut before): (Vec<_>, Vec<_>) = waits.partition(|(.., waits)| *waits);
    let (end, stuck) = (trace.end(), Stuck::of(trace));
    let text = match now.is_empty() {
        true => format!("At the end of the trace ({end} s) nobody waits.\n"),
        false => {
            format!("Waiting at the end of the trace ({end} s):\n")
                + &waits_table(trace, &mut now, most, &stuck, paint)
                + &paint.strong(&stuck.circles())
        }
    };
    let title = paint.strong("Longest waits that ended");
    text + &format!("\n{title}\n{}", waits_table(trace, &mut before, most, &stuck, paint))
}

fn waits_table(
    trace: &Trace,
    waits: &mut [(&Task, Piece, bool)],
    most: usize,
    stuck: &Stuck<'_>,
    paint: Paint,
) -> String {
    waits.sort_by_key(|(_, piece, _)| std::cmp::Reverse(trace.length(piece)));
    let mut table =
        Table::new(&["for", "since", "line", "id", "name", "waits for", "at", "ended by"]);
    for (task, piece, waits) in waits.iter().take(most) {
        let (line, end) = (&trace.lines[piece.from], &trace.lines[piece.to]);
        let ended = match waits {
            true => "-".to_owned(),
            false => format!("{} #{:04}", end.verb, end.seq),
        };
        table.row([
            Span(trace.length(piece)).to_string(),
            line.at.to_string(),
            format!("#{:04}", line.seq),
            task.id.to_string(),
            task.name.clone(),
            stuck.in_words(line),
            line.key("at").unwrap_or("-").to_owned(),
            ended,
        ]);
    }
    table.show(paint)
}

/// The longest runs, the longest waits for the CPU, and the timers that fired latest.
pub fn slow(trace: &Trace, most: usize, paint: Paint) -> String {
    let mut text = String::new();
    for (state, title) in [
        (State::Run, "Longest runs, from the line that began each"),
        (State::Ready, "Longest waits for the CPU, from the line that made the task ready"),
    ] {
        let pieces = trace.tasks.values().flat_map(|task| {
            let chosen = task.pieces.iter().filter(move |piece| piece.state == state);
            chosen.map(move |piece| (task, piece))
        });
        let rows = pieces.map(|(task, piece)| {
            // A timed trace knows how long a run took; a stable one only what its lines say.
            let key = if state == State::Run { "ran" } else { "waited" };
            let timed = trace.lines[piece.to].key(key).and_then(span);
            (
                timed.unwrap_or_else(|| trace.length(piece)),
                task.name.clone(),
                task.id,
                piece.from,
                piece.to,
            )
        });
        text += &worst(trace, rows.collect(), title, most, paint);
    }
    let fires = (0..trace.lines.len()).filter_map(|place| {
        let line = &trace.lines[place];
        let deadline: Time = line.key("deadline").filter(|_| line.verb == "fire")?.parse().ok()?;
        let set = line.cause.and_then(|cause| trace.place(cause)).unwrap_or(place);
        let owner = &trace.lines[set];
        Some((line.at.since(deadline), owner.name().to_owned(), owner.task, place, set))
    });
    text + &worst(trace, fires.collect(), "Timers that fired latest", most, paint)
}

/// A span, a task's name and number, a line, and the line whose site is shown.
type Slow = (Duration, String, u64, usize, usize);

fn worst(trace: &Trace, mut rows: Vec<Slow>, title: &str, most: usize, paint: Paint) -> String {
    rows.sort_by_key(|row| std::cmp::Reverse(row.0));
    let mut table = Table::new(&["for", "id", "name", "line", "at", "site"]);
    for (span, name, id, place, place_of_site) in rows.into_iter().take(most) {
        if span.is_zero() {
            break;
        }
        let line = &trace.lines[place];
        let at = trace.lines[place_of_site].key("at").or_else(|| line.key("at"));
        table.row([
            Span(span).to_string(),
            id.to_string(),
            name,
            format!("#{:04}", line.seq),
            line.at.to_string(),
            at.unwrap_or("-").to_owned(),
        ]);
    }
    let body =
        if table.is_empty() { "  none took any time\n".to_owned() } else { table.show(paint) };
    format!("{}\n{body}\n", paint.strong(title))
}
