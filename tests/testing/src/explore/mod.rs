//! The explorer: runs a program under every liberty of the world, as a seed decides.

use std::fmt;
use std::panic::Location;
use std::rc::Rc;

use kernel::Sim;
use traps::Site;
use traps::internal::liberty::{Liberty, explored};

use super::sweep::Watch;
use super::{Failure, Lived, Ran, Setup};
use case::LIBERTIES;
use choices::Choices;

mod case;
mod choices;
mod shrink;

pub use case::Case;

/// An exploration of a program; [`Explore::run`] or [`Explore::find`] makes it.
///
/// `program` makes a machine (a [`Sim`] or a [`Setup`]) and a main future for each run, always the
/// same: it must not depend on anything except the virtual clock.
///
/// The program is run once without liberties, and then once for each seed, which takes some
/// [liberties](crate#every-liberty) seldom, some always and some not at all. Each run must end,
/// must not have more panics than the plain run, must leave nothing behind and must keep the
/// promises of the log, as in [`Setup::run`]. The program can assert more.
///
/// The first run that fails is shrunk in three steps: to the fewest liberties with which this seed
/// still fails, to the fewest first decisions that are enough, and then by leaving out decisions
/// that do not matter. All other decisions are the usual ones. The result is a [`Case`], which may
/// fail in another way than the whole run did. Its text is in the message and in the log, and
/// [`Explore::replay`] repeats its run: the log is the same to the byte if `explore` is called at
/// the same call site, because the log shows it as that of main.
///
/// ```
/// use std::time::Duration;
/// use kernel::Sim;
/// use traps::{clock, sleep};
///
/// let sleeps = || {
///     let main = async {
///         let start = clock().await;
///         sleep(Duration::from_secs(1)).await.unwrap();
///         // Never early. That it is not late either is nobody's promise.
///         assert!(clock().await.since(start) >= Duration::from_secs(1));
///     };
///     (Sim::new(), main)
/// };
/// testing::explore(1..=50, sleeps).run();
/// ```
#[must_use = "an exploration is made by `run` or `find`"]
#[track_caller]
pub fn explore<P, S, F>(seeds: impl IntoIterator<Item = u64>, program: P) -> Explore<P>
where
    P: FnMut() -> (S, F),
    S: Into<Setup>,
    F: Future,
{
    let liberties = LIBERTIES.iter().map(|(liberty, _)| *liberty).collect();
    let (seeds, site) = (seeds.into_iter().collect(), Location::caller());
    Explore { program, seeds, liberties, site, limit: 0, panics: 0 }
}

/// An exploration to run, made by [`explore`](fn@explore).
#[derive(Debug)]
#[must_use = "an exploration is made by `run` or `find`"]
pub struct Explore<P> {
    program: P,
    seeds: Vec<u64>,
    liberties: Vec<Liberty>,
    /// The call site of main, in each run.
    site: Site,
    /// How many events a run may have, and how many tasks may panic. Set after the plain run.
    limit: u64,
    panics: usize,
}

/// The result of an exploration that found no failure.
#[derive(Debug)]
#[non_exhaustive]
pub struct Explored<T> {
    /// The run in which every decision is the usual one.
    pub plain: Ran<T>,
    /// The runs with a seed.
    pub runs: u64,
}

/// A run that fails.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Found {
    /// The shrunk case.
    pub case: Case,
    /// The case before it was shrunk.
    pub whole: Case,
    /// How many seeds were tried; 0 if the plain run fails.
    pub seeds: u64,
    /// What is wrong.
    pub why: String,
    /// The log of the run.
    pub trace: String,
}

impl fmt::Display for Found {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Found { case, whole, seeds, why, .. } = self;
        match seeds {
            0 => write!(f, "the program fails as it is: {why}"),
            _ => write!(
                f,
                "seed {} fails (seeds tried: {seeds}): {why}\n\
                 shrunk from: {whole}\nreplay with: {case}",
                whole.seed
            ),
        }
    }
}

impl From<Sim> for Setup {
    fn from(sim: Sim) -> Setup {
        Setup::new().sim(sim)
    }
}

/// The result of a run, and its decisions that were not the usual ones.
struct Tried<T> {
    result: Result<Lived<T>, Failure>,
    unusual: Vec<(u64, Liberty)>,
    /// All of its decisions.
    decisions: u64,
}

impl<P, S, F> Explore<P>
where
    P: FnMut() -> (S, F),
    S: Into<Setup>,
    F: Future,
{
    /// Takes only these liberties.
    pub fn only(mut self, liberties: &[Liberty]) -> Explore<P> {
        self.liberties = liberties.to_vec();
        self
    }

    /// Leaves this liberty out.
    pub fn without(mut self, liberty: Liberty) -> Explore<P> {
        self.liberties.retain(|taken| *taken != liberty);
        self
    }

    /// Makes the exploration.
    ///
    /// # Panics
    ///
    /// If a run fails. The message is that of [`Found`], and has the log.
    #[track_caller]
    pub fn run(mut self) -> Explored<F::Output> {
        match self.first() {
            Ok(explored) => explored,
            Err(found) => {
                let why = found.to_string();
                Failure { why, panic: None, trace: found.trace }.raise()
            }
        }
    }

    /// Runs the exploration, and returns the failure that it finds.
    pub fn find(mut self) -> Option<Found> {
        self.first().err().map(|found| *found)
    }

    /// Repeats the run of a case, given its text.
    ///
    /// # Errors
    ///
    /// Returns the failure of the run, as [`Explore::find`] did.
    ///
    /// # Panics
    ///
    /// If the text is not a case.
    #[track_caller]
    pub fn replay(mut self, case: &str) -> Result<Ran<F::Output>, Box<Found>> {
        let case: Case = case.parse().unwrap_or_else(|error: String| panic!("{error}"));
        self.plain()?;
        let seeds = u64::from(case != Case::plain());
        match self.one(&case).result {
            Ok(lived) => Ok(lived.ran),
            Err(Failure { why, trace, .. }) => {
                Err(Box::new(Found { whole: case.clone(), case, seeds, why, trace }))
            }
        }
    }

    fn first(&mut self) -> Result<Explored<F::Output>, Box<Found>> {
        let plain = self.plain()?;
        for (seeds, seed) in (1..).zip(self.seeds.clone()) {
            let liberties = self.liberties.clone();
            let mut whole = Case { seed, liberties, decisions: u64::MAX, usual: Vec::new() };
            let Tried { result, unusual, decisions } = self.one(&whole);
            if result.is_err() {
                whole.decisions = decisions;
                return Err(Box::new(self.shrunk(whole, unusual, seeds)));
            }
        }
        Ok(Explored { plain, runs: self.seeds.len() as u64 })
    }

    /// The run in which every decision is the usual one; its counts bound the other runs.
    fn plain(&mut self) -> Result<Ran<F::Output>, Box<Found>> {
        (self.limit, self.panics) = (0, usize::MAX);
        let case = Case::plain();
        match self.one(&case).result {
            Ok(lived) => {
                self.limit = 10_000 + 20 * lived.ran.trace.lines().count() as u64;
                self.panics = lived.panics;
                Ok(lived.ran)
            }
            Err(Failure { why, trace, .. }) => {
                Err(Box::new(Found { whole: case.clone(), case, seeds: 0, why, trace }))
            }
        }
    }

    /// One run.
    fn one(&mut self, case: &Case) -> Tried<F::Output> {
        let choices = Rc::new(Choices::new(case.clone()));
        let source = choices.clone();
        let source = Rc::new(move |liberty, most| source.draw(liberty, most));
        let lived = explored(source, || {
            let (setup, main) = (self.program)();
            let mut setup: Setup = setup.into();
            if self.limit > 0 {
                setup.limit.get_or_insert(self.limit);
            }
            if !case.liberties.is_empty() {
                setup.remark = Some(format!("# explored {case}"));
            }
            setup.live(Watch::default(), main, self.site)
        });
        let result = lived.and_then(|lived| match lived.panics > self.panics {
            true => {
                let why = "a task panicked".to_owned();
                Err(Failure { why, panic: None, trace: lived.ran.trace })
            }
            false => Ok(lived),
        });
        Tried { result, unusual: choices.unusual(), decisions: choices.count() }
    }
}
