//! The numbers that bound something: what each is, and what it is called.
//!
//! Each crate has them in its own `limits.rs`, and a function that lists them as they are in
//! force; the examples print all with `--print-limits`.

use std::fmt;
use std::time::Duration;

/// How long members of a [`TaskGroup`](crate::TaskGroup) may take to clean up.
pub(crate) const GROUP_GRACE: Duration = Duration::from_secs(5);

/// How old the last line about a refusal by an [admission limit](crate::admission::Limit) is, at
/// least, when another one has a line.
pub(crate) const ADMISSION_PAUSE: Duration = Duration::from_secs(10);

/// One number that bounds something.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Bound {
    /// What it is called in the list: the crate or module, then the thing.
    pub name: &'static str,
    /// As it is in force.
    pub value: Value,
    /// What sets it: `Options::budget`, say. Empty: nothing, it is fixed.
    pub option: &'static str,
    /// What it bounds.
    pub what: &'static str,
}

/// A number and its unit.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Value {
    /// So many of something, in the plural.
    Count(u64, &'static str),
    /// A span of time.
    Span(Duration),
    /// There is no bound.
    Off,
}

impl Bound {
    /// One that an option sets.
    #[must_use]
    pub fn set(
        name: &'static str,
        value: impl Into<Value>,
        option: &'static str,
        what: &'static str,
    ) -> Bound {
        Bound { name, value: value.into(), option, what }
    }

    /// One that nothing sets.
    #[must_use]
    pub fn fixed(name: &'static str, value: impl Into<Value>, what: &'static str) -> Bound {
        Bound::set(name, value, "", what)
    }
}

impl From<Duration> for Value {
    fn from(span: Duration) -> Value {
        if span == Duration::MAX { Value::Off } else { Value::Span(span) }
    }
}

impl From<Option<Duration>> for Value {
    fn from(span: Option<Duration>) -> Value {
        span.map_or(Value::Off, Value::Span)
    }
}

impl From<(u64, &'static str)> for Value {
    fn from((count, unit): (u64, &'static str)) -> Value {
        Value::Count(count, unit)
    }
}

/// `128 operations`, `0.3 s`, `off`.
impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Value::Count(count, unit) => write!(f, "{count} {unit}"),
            Value::Span(span) => write!(f, "{} s", span.as_secs_f64()),
            Value::Off => f.write_str("off"),
        }
    }
}

/// One line: name, value, `(option)` or `(fixed)`, and what it bounds.
impl fmt::Display for Bound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Bound { name, value, option, what } = self;
        let option = if option.is_empty() { "fixed" } else { option };
        let (value, option) = (value.to_string(), format!("({option})"));
        write!(f, "{name:<22} {value:<20} {option:<28} {what}")
    }
}

/// The bounds of this crate.
#[must_use]
pub fn limits() -> Vec<Bound> {
    vec![
        Bound::set("group.grace", GROUP_GRACE, "TaskGroup::grace", "clean-up of a group's members"),
        Bound::fixed("admission.pause", ADMISSION_PAUSE, "between two lines about refusals"),
    ]
}
