//! Shrinking: finds the smallest part of a case that still fails.

use traps::internal::liberty::Liberty;

use super::case::{Case, LIBERTIES};
use super::{Explore, Found, Setup};
use crate::Failure;

/// How many decisions the search tries to leave out.
const TRIED: usize = 300;

impl<P, S, F> Explore<P>
where
    P: FnMut() -> (S, F),
    S: Into<Setup>,
    F: Future,
{
    /// Returns the smallest case that still fails, given one that fails.
    pub(super) fn shrunk(
        &mut self,
        whole: Case,
        unusual: Vec<(u64, Liberty)>,
        seeds: u64,
    ) -> Found {
        let (case, unusual) = self.fewest_liberties(&whole, unusual);
        let case = self.fewest_decisions(case, &unusual);
        let rule = "rule: a program is the same in each run";
        let (why, trace) = match (self.one(&case).result, self.one(&case).result) {
            (Err(one), Err(other)) if one.trace == other.trace => (one.why, one.trace),
            (Err(Failure { why, trace, .. }), _) | (_, Err(Failure { why, trace, .. })) => {
                (format!("{rule}, but this run is another now: {why}"), trace)
            }
            _ => (format!("{rule}, but this one failed only once"), String::new()),
        };
        Found { case, whole, seeds, why, trace }
    }

    fn fails(&mut self, case: &Case) -> bool {
        self.one(case).result.is_err()
    }

    /// Tries sets of liberties, small sets first. Also returns the decisions that are not the usual
    /// ones.
    fn fewest_liberties(
        &mut self,
        whole: &Case,
        unusual: Vec<(u64, Liberty)>,
    ) -> (Case, Vec<(u64, Liberty)>) {
        let taken = |liberty| unusual.iter().any(|(_, taken)| *taken == liberty);
        let taken: Vec<Liberty> =
            LIBERTIES.iter().map(|it| it.0).filter(|liberty| taken(*liberty)).collect();
        let mut sets: Vec<u32> = (1..1 << taken.len()).collect();
        sets.sort_by_key(|set| set.count_ones());
        for set in sets {
            let is_in = |at: &usize| set & 1 << at != 0;
            let liberties = (0..taken.len()).filter(is_in).map(|at| taken[at]).collect();
            let case = Case { liberties, ..whole.clone() };
            let tried = self.one(&case);
            if tried.result.is_err() {
                return (case, tried.unusual);
            }
        }
        (whole.clone(), unusual)
    }

    /// Cuts a case after the fewest first decisions that are enough. A usual decision makes no
    /// difference, and a case without decisions is the plain run, which does not fail. Then leaves
    /// out earlier decisions that do not matter, one by one, until each is needed.
    fn fewest_decisions(&mut self, mut case: Case, unusual: &[(u64, Liberty)]) -> Case {
        let places = || unusual.iter().map(|(place, _)| *place);
        let enough = places().find(|place| self.fails(&Case { decisions: *place, ..case.clone() }));
        case.decisions = enough.unwrap_or(case.decisions);
        let mut before: Vec<u64> = places().filter(|it| *it < case.decisions).take(TRIED).collect();
        loop {
            let kept = before.len();
            before.retain(|place| {
                case.usual.push(*place);
                let fails = self.fails(&case);
                if !fails {
                    case.usual.pop();
                }
                !fails
            });
            if before.len() == kept {
                case.usual.sort_unstable();
                return case;
            }
        }
    }
}
