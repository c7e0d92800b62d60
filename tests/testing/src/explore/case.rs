//! A case: the decisions of a seed that apply in a run. The text of a case is enough to repeat the
//! run.

use std::fmt;
use std::str::FromStr;

use traps::internal::liberty::Liberty;

/// Every liberty with its name.
pub(super) const LIBERTIES: [(Liberty, &str); 6] = [
    (Liberty::Order, "order"),
    (Liberty::Arrivals, "arrivals"),
    (Liberty::Lateness, "lateness"),
    (Liberty::Readiness, "readiness"),
    (Liberty::Lengths, "lengths"),
    (Liberty::Jobs, "jobs"),
];

/// The decisions that apply in a run: the first decisions that a seed draws for some liberties. All
/// other decisions are the usual ones.
///
/// The text is `seed=17 liberties=order,lateness decisions=23`, or, with some decisions left out,
/// `seed=17 liberties=order,lateness decisions=23 usual=1,5`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Case {
    /// The seed, which determines all drawn decisions.
    pub seed: u64,
    /// The liberties that are drawn.
    pub liberties: Vec<Liberty>,
    /// How many are drawn.
    pub decisions: u64,
    /// The decisions that are the usual ones nevertheless, numbered from 1.
    pub usual: Vec<u64>,
}

impl Case {
    /// Returns the case in which every decision is the usual one.
    pub(super) fn plain() -> Case {
        Case { seed: 0, liberties: Vec::new(), decisions: 0, usual: Vec::new() }
    }
}

impl fmt::Display for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let taken = LIBERTIES.iter().filter(|(liberty, _)| self.liberties.contains(liberty));
        let names: Vec<&str> = taken.map(|(_, name)| *name).collect();
        let names = if names.is_empty() { "none".to_owned() } else { names.join(",") };
        write!(f, "seed={} liberties={names} decisions={}", self.seed, self.decisions)?;
        if self.usual.is_empty() {
            return Ok(());
        }
        let usual: Vec<String> = self.usual.iter().map(u64::to_string).collect();
        write!(f, " usual={}", usual.join(","))
    }
}

impl FromStr for Case {
    type Err = String;

    fn from_str(text: &str) -> Result<Case, String> {
        let expected = || {
            let example = "seed=17 liberties=order,lateness decisions=23";
            format!("expected a case such as `{example}`, found `{text}`")
        };
        let words: Vec<&str> = text.split_whitespace().collect();
        let (words, usual) = match words[..] {
            [seed, liberties, decisions] => ([seed, liberties, decisions], None),
            [seed, liberties, decisions, usual] => ([seed, liberties, decisions], Some(usual)),
            _ => return Err(expected()),
        };
        let [seed, liberties, decisions] = words;
        let value = |word: &str, key: &str| {
            word.strip_prefix(key)?.strip_prefix('=').map(str::to_owned).filter(|it| !it.is_empty())
        };
        let number = |word, key| value(word, key)?.parse().ok();
        let liberty = |name: &str| LIBERTIES.iter().find(|it| it.1 == name).map(|it| it.0);
        let names = value(liberties, "liberties").ok_or_else(expected)?;
        let liberties = match names.as_str() {
            "none" => Some(Vec::new()),
            names => names.split(',').map(liberty).collect(),
        };
        let places = |word| value(word, "usual")?.split(',').map(|it| it.parse().ok()).collect();
        Ok(Case {
            seed: number(seed, "seed").ok_or_else(expected)?,
            liberties: liberties.ok_or_else(expected)?,
            decisions: number(decisions, "decisions").ok_or_else(expected)?,
            usual: usual.map_or(Some(Vec::new()), places).ok_or_else(expected)?,
        })
    }
}
