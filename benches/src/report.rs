//! What one figure is, and the table that shows many.

use std::fmt::Write as _;

/// The median of some samples, with the least and the most of them.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    pub samples: usize,
}

impl Spread {
    /// Of at least one sample.
    pub fn of(mut samples: Vec<f64>) -> Spread {
        assert!(!samples.is_empty(), "a spread needs a sample");
        samples.sort_by(f64::total_cmp);
        let (low, high) = (samples[0], samples[samples.len() - 1]);
        Spread { median: samples[samples.len() / 2], low, high, samples: samples.len() }
    }
}

/// What a figure is held to.
#[derive(Clone, Copy, Debug, PartialEq)]
#[allow(clippy::enum_variant_names, reason = "they read as a sentence")]
pub enum Bar {
    /// A figure in the row's own unit.
    AtMost(f64),
    /// So many times the figure of that peer in the same run, at most.
    AtMostOf(&'static str, f64),
    /// So many times the figure of that peer in the same run, at least.
    #[allow(dead_code, reason = "for rows where more is better")]
    AtLeastOf(&'static str, f64),
}

/// One line of the table.
#[derive(Clone, Debug)]
pub struct Row {
    pub section: &'static str,
    pub figure: String,
    pub unit: &'static str,
    pub bar: Option<Bar>,
    pub ours: Spread,
    pub peers: Vec<(&'static str, Spread)>,
    /// Ours divided by the peer's, pair by pair, as they were measured one after the other.
    pub ratios: Vec<(&'static str, Spread)>,
    /// Ours with twice the load.
    pub doubled: Option<Spread>,
    pub limits: &'static str,
}

impl Row {
    /// Whether the row keeps to its bar; `None` where it has none, or its peer was not measured.
    ///
    /// It does unless the whole range lies on the wrong side.
    pub fn passes(&self) -> Option<bool> {
        let ratio = |peer| self.ratios.iter().find(|(name, _)| *name == peer).map(|(_, of)| of);
        match self.bar? {
            Bar::AtMost(most) => Some(self.ours.low <= most),
            Bar::AtMostOf(peer, most) => Some(ratio(peer)?.low <= most),
            Bar::AtLeastOf(peer, least) => Some(ratio(peer)?.high >= least),
        }
    }
}

fn short(figure: f64) -> String {
    match figure {
        _ if figure >= 100.0 => format!("{figure:.0}"),
        _ if figure >= 10.0 => format!("{figure:.1}"),
        _ => format!("{figure:.2}"),
    }
}

fn bar(bar: Option<Bar>) -> String {
    match bar {
        None => "-".to_owned(),
        Some(Bar::AtMost(most)) => format!("<= {}", short(most)),
        Some(Bar::AtMostOf(peer, times)) => format!("<= {times} x {peer}"),
        Some(Bar::AtLeastOf(peer, times)) => format!(">= {times} x {peer}"),
    }
}

fn spread(spread: &Spread) -> String {
    format!("{} ({}..{})", short(spread.median), short(spread.low), short(spread.high))
}

/// The rows as a table in Markdown.
pub fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut section = "";
    for row in rows {
        if row.section != section {
            section = row.section;
            let _ = writeln!(text, "\n### {section}\n");
            let head = "| figure | unit | trapline | bar | verdict | peers | ours / peer | doubled";
            let _ =
                writeln!(text, "{head} | what limits it |\n|---|---|---|---|---|---|---|---|---|");
        }
        let _ = writeln!(text, "{}", line(row));
    }
    text
}

fn line(row: &Row) -> String {
    let verdict = match row.passes() {
        None => "-",
        Some(true) => "ok",
        Some(false) => "SHORT",
    };
    let list = |all: &[(&str, Spread)], show: &dyn Fn(&Spread) -> String| {
        let all: Vec<String> =
            all.iter().map(|(name, of)| format!("{name} {}", show(of))).collect();
        if all.is_empty() { "-".to_owned() } else { all.join(", ") }
    };
    let ratio = |of: &Spread| format!("{:.2} ({:.2}..{:.2})", of.median, of.low, of.high);
    let grown = |doubled: Spread| {
        format!("{} = {:.2} x", short(doubled.median), doubled.median / row.ours.median)
    };
    format!(
        "| {} | {} | {} | {} | {verdict} | {} | {} | {} | {} |",
        row.figure,
        row.unit,
        spread(&row.ours),
        bar(row.bar),
        list(&row.peers, &|of| spread(of)),
        list(&row.ratios, &ratio),
        row.doubled.map_or("-".to_owned(), grown),
        row.limits,
    )
}
