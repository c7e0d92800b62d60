//! The time and the machine of a run, without which a measured time means little.

use std::fs;
use std::time::{Duration, SystemTime};

use httpdate::fmt_http_date;

use crate::report::quoted;
use crate::sys;

/// How often whatever is timed is timed.
#[must_use]
pub fn rounds(quick: bool) -> usize {
    if quick { 3 } else { 11 }
}

/// How long a server is under load in each of these.
#[must_use]
pub fn span(quick: bool) -> Duration {
    Duration::from_millis(if quick { 250 } else { 1000 })
}

/// The facts about one run, from its beginning.
pub struct Occasion {
    began: SystemTime,
    rounds: usize,
}

impl Occasion {
    /// The run that begins now.
    #[must_use]
    pub fn begin(quick: bool) -> Occasion {
        Occasion { began: SystemTime::now(), rounds: rounds(quick) }
    }

    /// Names and values, as of now.
    fn facts(&self) -> [(&'static str, String); 7] {
        let took = self.began.elapsed().unwrap_or_default();
        let system = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
        [
            ("began", fmt_http_date(self.began)),
            ("minutes", (took.as_secs() / 60).to_string()),
            ("rounds", self.rounds.to_string()),
            ("compiler", env!("BENCH_COMPILER").to_owned()),
            ("system", format!("Linux {}", system.trim())),
            ("processor", processor()),
            ("cores", sys::cores().to_string()),
        ]
    }

    /// One line, as Markdown.
    #[must_use]
    pub fn line(&self) -> String {
        let [began, minutes, rounds, compiler, system, processor, cores] =
            self.facts().map(|(_, value)| value);
        format!(
            "Began {began}, took {minutes} min; {rounds} rounds; {compiler}; {system}; \
             {processor}, cores: {cores}\n"
        )
    }

    /// The occasion as a JSON object; all values are strings.
    #[must_use]
    pub fn json(&self) -> String {
        let facts =
            self.facts().map(|(name, value)| format!("{}: {}", quoted(name), quoted(&value)));
        format!("{{{}}}", facts.join(", "))
    }
}

/// The system's name of the processor, or the architecture if the system has none.
fn processor() -> String {
    let text = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let name = text.lines().find_map(|line| line.strip_prefix("model name"));
    let name = name.map(|name| name.trim_start_matches([':', '\t', ' ']).trim());
    name.unwrap_or(std::env::consts::ARCH).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_run_says_when_it_was_and_of_which_compiler() {
        let occasion = Occasion { began: SystemTime::UNIX_EPOCH, rounds: 11 };
        let (line, json) = (occasion.line(), occasion.json());
        assert!(line.starts_with("Began Thu, 01 Jan 1970 00:00:00 GMT, took "), "{line}");
        assert!(line.contains("; 11 rounds; rustc "), "{line}");
        assert!(json.starts_with("{\"began\": \"Thu, 01 Jan 1970 00:00:00 GMT\", \"minutes\": \""));
        assert!(json.contains("\"rounds\": \"11\", \"compiler\": \"rustc "), "{json}");
    }
}
