//! The remark of a dump of the flight recorder.

use kernel::trace::Seq;

/// The remark `# flight from=#N cause=WORD at=#M` of a dump, which begins with the lines in force.
///
/// ```
/// use testing::trace::Flight;
///
/// let dump = Flight::parse("# flight from=#0901 cause=hang at=#1700").unwrap();
/// assert_eq!((dump.from, dump.at), (901, 1700));
/// assert_eq!(Flight::parse("# explored seed=1"), None);
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flight {
    /// The first line that is not in the head. The lines of the head are those that were in force
    /// then.
    pub from: Seq,
    /// The line of the cause of the dump.
    pub at: Seq,
}

impl Flight {
    /// Parses the remark, or returns `None` for another one.
    #[must_use]
    pub fn parse(remark: &str) -> Option<Flight> {
        let words = remark.strip_prefix("# flight ")?;
        let line = |key: &str| words.split(' ').find_map(|it| it.strip_prefix(key)?.parse().ok());
        Some(Flight { from: line("from=#")?, at: line("at=#")? })
    }
}
