//! Measurements, as a table to read and as JSON.

use std::fmt::Write as _;

/// Several measurements of the same thing.
#[derive(Clone, Copy, Debug)]
pub struct Spread {
    pub median: f64,
    pub low: f64,
    pub high: f64,
    pub samples: usize,
}

impl Spread {
    /// The median of samples in any order, or NaN if there are none. NaN samples are left out.
    #[must_use]
    pub fn of(mut samples: Vec<f64>) -> Spread {
        samples.retain(|sample| !sample.is_nan());
        samples.sort_by(f64::total_cmp);
        let at = |place: usize| samples.get(place).copied().unwrap_or(f64::NAN);
        let last = samples.len().saturating_sub(1);
        let median = f64::midpoint(at(last / 2), at(last.div_ceil(2)));
        Spread { median, low: at(0), high: at(last), samples: samples.len() }
    }

    /// The value of a count that repeats.
    #[must_use]
    #[allow(dead_code, reason = "for figures that are measured once")]
    pub fn exact(value: f64) -> Spread {
        Spread { median: value, low: value, high: value, samples: 1 }
    }
}

/// The bar of a figure.
#[derive(Clone, Copy, Debug)]
#[allow(clippy::enum_variant_names, reason = "they read as a sentence")]
pub enum Bar {
    AtMost(f64),
    /// This multiple of the figure of that peer.
    AtMostOf(&'static str, f64),
    #[allow(dead_code, reason = "for rows where more is better")]
    AtLeastOf(&'static str, f64),
}

/// One figure.
#[derive(Clone, Debug)]
pub struct Row {
    pub section: &'static str,
    pub figure: String,
    /// Other measurements that are not figures of ours; may be empty.
    pub note: String,
    pub unit: &'static str,
    pub bar: Option<Bar>,
    pub ours: Spread,
    pub peers: Vec<(&'static str, Spread)>,
    /// Ours divided by a peer's, of samples that were taken one after the other. If there are none
    /// for a peer, the bar uses the peer's median.
    pub ratios: Vec<(&'static str, Spread)>,
    /// Ours with twice the load.
    pub doubled: Option<Spread>,
    pub limits: &'static str,
}

/// Whether a bar is kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    NoBar,
    Pass,
    /// The median misses the bar, whatever the range.
    Short,
    /// The peer that it is compared with was not measured.
    Unknown,
}

impl Row {
    #[must_use]
    pub fn verdict(&self) -> Verdict {
        let find = |all: &[(&'static str, Spread)], name| {
            all.iter().find(|(found, _)| *found == name).map(|(_, spread)| *spread)
        };
        // The median of ours as a multiple of the peer's.
        let times = |name| {
            let paired = find(&self.ratios, name).map(|of| of.median);
            paired.or_else(|| find(&self.peers, name).map(|of| self.ours.median / of.median))
        };
        let kept = match self.bar {
            None => return Verdict::NoBar,
            Some(Bar::AtMost(most)) => Some(self.ours.median <= most),
            Some(Bar::AtMostOf(name, factor)) => times(name).map(|median| median <= factor),
            Some(Bar::AtLeastOf(name, factor)) => times(name).map(|median| median >= factor),
        };
        match kept {
            Some(true) => Verdict::Pass,
            Some(false) => Verdict::Short,
            None => Verdict::Unknown,
        }
    }

    fn bar_text(&self) -> String {
        match self.bar {
            None => String::new(),
            Some(Bar::AtMost(most)) => format!("at most {}", number(most)),
            Some(Bar::AtMostOf(name, factor)) => format!("at most {factor} x {name}"),
            Some(Bar::AtLeastOf(name, factor)) => format!("at least {factor} x {name}"),
        }
    }
}

impl Verdict {
    fn word(self) -> &'static str {
        match self {
            Verdict::NoBar => "",
            Verdict::Pass => "pass",
            Verdict::Short => "SHORT",
            Verdict::Unknown => "no peer",
        }
    }
}

/// With as many digits as mean something.
#[must_use]
pub fn number(value: f64) -> String {
    match value.abs() {
        _ if !value.is_finite() => "-".to_owned(),
        large if large >= 100.0 => format!("{value:.0}"),
        middle if middle >= 10.0 => format!("{value:.1}"),
        _ => format!("{value:.2}"),
    }
}

fn spread(of: &Spread) -> String {
    match of.samples {
        0 => "-".to_owned(),
        1 => number(of.median),
        _ => format!("{} ({}..{})", number(of.median), number(of.low), number(of.high)),
    }
}

/// The table, as Markdown: a part for each section.
#[must_use]
pub fn table(rows: &[Row]) -> String {
    let mut text = String::new();
    let mut section = "";
    for row in rows {
        if row.section != section {
            section = row.section;
            let _ = writeln!(text, "\n## {section}\n");
            text += "| figure | ours | bar | verdict | doubled | peers | limited by |\n";
            text += "|---|---|---|---|---|---|---|\n";
        }
        let peers = row.peers.iter().map(|(name, of)| {
            let ratio = row.ratios.iter().find(|(found, _)| found == name);
            let times = ratio.map_or(String::new(), |(_, ratio)| format!(" = x {}", spread(ratio)));
            format!("{name} {}{times}", spread(of))
        });
        let doubled = row.doubled.as_ref().map_or(String::new(), |twice| {
            format!("{} (x {})", number(twice.median), number(twice.median / row.ours.median))
        });
        let note = match row.note.as_str() {
            "" => String::new(),
            note => format!(" ({note})"),
        };
        let _ = writeln!(
            text,
            "| {}{note}, {} | {} | {} | {} | {doubled} | {} | {} |",
            row.figure,
            row.unit,
            spread(&row.ours),
            row.bar_text(),
            row.verdict().word(),
            peers.collect::<Vec<_>>().join("; "),
            row.limits,
        );
    }
    text
}

/// The report as JSON: an object of what the run was, which is JSON already, and of the rows.
#[must_use]
pub fn json(run: &str, rows: &[Row]) -> String {
    let rows: Vec<String> = rows.iter().map(json_row).collect();
    format!("{{\"run\": {run}, \"rows\": [\n{}\n]}}\n", rows.join(",\n"))
}

fn json_row(row: &Row) -> String {
    let named = |all: &[(&'static str, Spread)]| -> String {
        let all = all.iter().map(|(name, of)| format!("{}: {}", quoted(name), json_spread(of)));
        all.collect::<Vec<_>>().join(", ")
    };
    format!(
        "  {{\"section\": {}, \"figure\": {}, \"note\": {}, \"unit\": {}, \"bar\": {}, \
         \"verdict\": {}, \"ours\": {}, \"doubled\": {}, \"peers\": {{{}}}, \
         \"ratios\": {{{}}}, \"limits\": {}}}",
        quoted(row.section),
        quoted(&row.figure),
        quoted(&row.note),
        quoted(row.unit),
        quoted(&row.bar_text()),
        quoted(row.verdict().word()),
        json_spread(&row.ours),
        row.doubled.as_ref().map_or("null".to_owned(), json_spread),
        named(&row.peers),
        named(&row.ratios),
        quoted(row.limits),
    )
}

fn json_spread(of: &Spread) -> String {
    let number = |value: f64| match value.is_finite() {
        true => value.to_string(),
        false => "null".to_owned(),
    };
    let (median, low, high) = (number(of.median), number(of.low), number(of.high));
    let samples = of.samples;
    format!("{{\"median\": {median}, \"low\": {low}, \"high\": {high}, \"samples\": {samples}}}")
}

/// A JSON string.
#[must_use]
pub fn quoted(text: &str) -> String {
    let mut out = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => out.extend(['\\', c]),
            c if c.is_control() => out.push(' '),
            c => out.push(c),
        }
    }
    out.push('"');
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(ours: [f64; 3], bar: Bar) -> Row {
        Row {
            section: "s",
            figure: "a \"figure\"".to_owned(),
            note: String::new(),
            unit: "ns",
            bar: Some(bar),
            ours: Spread::of(ours.to_vec()),
            peers: vec![("epoll", Spread::exact(2.0))],
            ratios: Vec::new(),
            doubled: None,
            limits: "",
        }
    }

    #[test]
    fn a_bar_is_kept_by_the_median_whatever_the_range() {
        let verdict = |ours, bar| row(ours, bar).verdict();
        assert_eq!(verdict([3.0, 1.0, 2.0], Bar::AtMost(2.0)), Verdict::Pass);
        assert_eq!(verdict([3.0, 1.0, 2.0], Bar::AtMost(1.9)), Verdict::Short);
        assert_eq!(verdict([3.0, 1.0, 2.0], Bar::AtLeastOf("epoll", 1.0)), Verdict::Pass);
        assert_eq!(verdict([3.0, 1.0, 2.0], Bar::AtLeastOf("epoll", 1.5)), Verdict::Short);
        assert_eq!(verdict([3.0, 1.0, 2.0], Bar::AtMostOf("epoll", 0.5)), Verdict::Short);
        assert_eq!(verdict([3.0, 1.0, 2.0], Bar::AtMostOf("mio", 9.0)), Verdict::Unknown);
    }

    #[test]
    fn a_median_of_few_is_between_the_middle_two() {
        assert!((Spread::of(vec![4.0, 1.0]).median - 2.5).abs() < 1e-9);
        assert!((Spread::of(vec![4.0, 1.0, 2.0]).median - 2.0).abs() < 1e-9);
        assert!(Spread::of(Vec::new()).median.is_nan());
    }

    #[test]
    fn a_note_stands_beside_the_figure_and_not_in_it() {
        let noted = Row { note: "floor 2".to_owned(), ..row([1.0; 3], Bar::AtMost(1.0)) };
        assert!(json("{}", std::slice::from_ref(&noted)).contains("\"note\": \"floor 2\""));
        assert!(table(&[noted]).contains("| a \"figure\" (floor 2), ns |"));
    }

    #[test]
    fn json_has_no_bare_quote_and_no_nan() {
        let mut bad = row([1.0, f64::NAN, 1.0], Bar::AtMost(1.0));
        bad.ours.high = f64::NAN;
        let text = json("{}", &[bad]);
        assert!(text.contains("a \\\"figure\\\""));
        assert!(!text.contains("NaN") && text.contains("\"high\": null"));
    }
}
