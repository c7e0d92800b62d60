//! The servers in a few lines: each as a multiple of the floor.

use std::fmt::Write as _;

use crate::report::{Row, Spread, number};
use crate::servers::{FLOOR, HTTP};

const LOADS: [&str; 2] = ["keep-alive 64", "echo 64"];
const SECTIONS: [&str; 3] =
    ["Requests per second", "Server CPU per request", "Instructions in user space"];

/// At most a heading and a line for each of the loads and sections that were measured; nothing if
/// none was.
#[must_use]
pub fn summary(rows: &[Row]) -> String {
    let mut text = String::new();
    for (load, section) in LOADS.iter().flat_map(|load| SECTIONS.map(|section| (load, section))) {
        let figure = format!("(a) {load}, all deadlines");
        let found = rows.iter().find(|row| row.section == section && row.figure == figure);
        let Some(row) = found else { continue };
        let Some((_, floor)) = row.peers.iter().find(|(name, _)| *name == FLOOR) else { continue };
        let times = |of: &Spread| number(of.median / floor.median);
        let _ = write!(text, "* {load}, {}: (a) {}", section, times(&row.ours));
        for (name, of) in row.peers.iter().filter(|(name, _)| *name != FLOOR) {
            // (b) is among the peers of (a).
            let name = if name.starts_with(HTTP) { "(b)" } else { name };
            let _ = write!(text, ", {name} {}", times(of));
        }
        text.push('\n');
    }
    if text.is_empty() {
        return text;
    }
    format!("\n## In short: multiples of the floor, all deadlines (+d)\n\n{text}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(section: &'static str, figure: &str, floor: f64) -> Row {
        let exact = Spread::exact;
        Row {
            section,
            figure: figure.to_owned(),
            note: String::new(),
            unit: "",
            bar: None,
            ours: exact(3.0),
            peers: vec![
                (FLOOR, exact(floor)),
                ("trapline-http +d", exact(4.0)),
                ("tokio +d", exact(5.0)),
            ],
            ratios: Vec::new(),
            doubled: None,
            limits: "",
        }
    }

    #[test]
    fn the_summary_has_all_as_multiples_of_the_floor() {
        let rows = [
            row("Instructions in user space", "(a) keep-alive 64, all deadlines", 2.0),
            row("Instructions in user space", "(a) keep-alive 64, no deadlines", 9.0),
            row("Requests per second", "(a) echo 64, all deadlines", 1.0),
            row("System calls", "(a) echo 64, all deadlines", 1.0),
        ];
        let text = summary(&rows);
        let lines: Vec<&str> = text.lines().filter(|line| line.starts_with('*')).collect();
        let [one, two] = lines[..] else { panic!("{text}") };
        let instructions = "Instructions in user space: (a) 1.50, (b) 2.00, tokio +d 2.50";
        assert_eq!(one, format!("* keep-alive 64, {instructions}"));
        assert_eq!(two, "* echo 64, Requests per second: (a) 3.00, (b) 4.00, tokio +d 5.00");
    }

    #[test]
    fn without_servers_there_is_no_summary() {
        assert_eq!(summary(&[row("tasks", "yield, 1 task", 1.0)]), "");
    }
}
