//! Random values of every form, as they come and as they are printed, for the tests.

use std::borrow::Cow;
use std::time::Duration;

use proptest::prelude::*;
use traps::time::Time;

use super::event::Answers;
use super::form::*;
use super::words::{stop, word};
use super::*;

/// Where random values come from. Two with the same seeds give the same values, but for texts and
/// spans: one gives them as wild as they come, the other as they are printed and read back.
#[derive(Clone, Debug)]
pub(super) struct Source {
    raw: bool,
    numbers: Vec<u64>,
    texts: Vec<String>,
    spans: Vec<Duration>,
    letter: char,
    /// How many choices were made.
    made: usize,
    choices: Vec<usize>,
}

impl Source {
    /// The same values, as wild as they come or as they are read back.
    pub(super) fn copy(&self, raw: bool) -> Source {
        Source { raw, ..self.clone() }
    }

    fn next(&mut self) -> usize {
        self.made += 1;
        self.choices[self.made % self.choices.len()]
    }

    pub(super) fn pick<'p, T>(&mut self, all: &'p [T]) -> &'p T {
        &all[self.next() % all.len()]
    }

    fn flip(&mut self) -> bool {
        self.next().is_multiple_of(2)
    }

    fn number(&mut self) -> u64 {
        let nth = self.next() % self.numbers.len();
        self.numbers[nth]
    }

    fn text(&mut self, clean: fn(&str) -> Cow<'_, str>) -> Text<'static> {
        let nth = self.next() % self.texts.len();
        let text = self.texts[nth].clone();
        Cow::Owned(if self.raw { text } else { clean(&text).into_owned() })
    }

    fn span(&mut self) -> Duration {
        let nth = self.next() % self.spans.len();
        let span = self.spans[nth];
        if self.raw { span } else { (Time::ZERO + span).since(Time::ZERO) }
    }
}

/// Random values of a form.
pub(super) trait Any<T> {
    /// The first words of all values, where these come from a list.
    const WORDS: &'static [&'static str] = &[];

    fn any(&self, source: &mut Source) -> T;

    /// The same, or none if the form has no value.
    fn any_if(&self, source: &mut Source) -> Option<T> {
        Some(self.any(source))
    }
}

/// Any row of a table: each field by its own form.
macro_rules! any_row {
    ($name:ident $(<$a:lifetime>)? {
        $($variant:ident = $word:literal { $($index:tt, $field:ident: $type:ty = $form:expr),* }),*
    }) => {
        impl $(<$a>)? $crate::trace::any_event_tests::Any<$name $(<$a>)?> for Own {
            const WORDS: &'static [&'static str] = &[$($word),*];

            fn any(&self, source: &mut $crate::trace::any_event_tests::Source) -> $name $(<$a>)? {
                use $crate::trace::any_event_tests as random;
                let rows: &[fn(&mut random::Source) -> $name $(<$a>)?] = &[$(|_source| {
                    $(let $field: $type = random::Any::any(&$form, _source);)*
                    $name::$variant { $($index: $field),* }
                }),*];
                source.pick(rows)(source)
            }
        }
    };
}
pub(super) use any_row;

impl Any<u64> for Number {
    fn any(&self, source: &mut Source) -> u64 {
        source.number()
    }
}

impl Any<u32> for Number {
    fn any(&self, source: &mut Source) -> u32 {
        source.number() as u32
    }
}

impl<T, F: Any<T>> Any<Option<T>> for Opt<F> {
    fn any(&self, source: &mut Source) -> Option<T> {
        source.flip().then(|| self.0.any(source))
    }
}

impl<T: Default + PartialEq, F: Any<T>> Any<T> for Filled<F> {
    fn any(&self, source: &mut Source) -> T {
        // An empty value is left out, though as a word it would be `_`.
        let raw = self.0.any(&mut source.copy(true));
        let value = self.0.any(source);
        if raw == T::default() || source.flip() { T::default() } else { value }
    }
}

impl<T: Copy, F: Any<T>> Any<T> for Named<'_, T, F> {
    fn any(&self, source: &mut Source) -> T {
        let other = self.1.any_if(source).filter(|_| source.flip());
        other.unwrap_or_else(|| source.pick(self.0).0)
    }
}

impl<T> Any<T> for Other {
    fn any(&self, _: &mut Source) -> T {
        unreachable!("all values have names")
    }

    fn any_if(&self, _: &mut Source) -> Option<T> {
        None
    }
}

impl<'a> Any<Text<'a>> for Free {
    fn any(&self, source: &mut Source) -> Text<'a> {
        source.text(self.0)
    }
}

impl<'a> Any<Cow<'a, [Answered<'a>]>> for Answers {
    fn any(&self, source: &mut Source) -> Cow<'a, [Answered<'a>]> {
        let one = |source: &mut Source| Answered { ticket: source.number(), outcome: any(source) };
        (0..source.next() % 4).map(|_| one(source)).collect::<Vec<_>>().into()
    }
}

impl Any<Time> for Own {
    fn any(&self, source: &mut Source) -> Time {
        Time::from_micros(source.number())
    }
}

impl Any<Duration> for Own {
    fn any(&self, source: &mut Source) -> Duration {
        source.span()
    }
}

impl<'a> Any<Site<'a>> for Own {
    fn any(&self, source: &mut Source) -> Site<'a> {
        Site { file: source.text(word), line: source.number() as u32 }
    }
}

impl<'a> Any<Stop<'a>> for Own {
    fn any(&self, source: &mut Source) -> Stop<'a> {
        Stop { trap: source.text(stop), at: Opt(Own).any(source) }
    }
}

impl Any<Alias> for Own {
    fn any(&self, source: &mut Source) -> Alias {
        let is_shown = source.raw || source.letter.is_ascii_lowercase();
        let kind = if is_shown { source.letter } else { 'f' };
        Alias { kind, number: source.number() as u32 }
    }
}

impl<'a> Any<Line<'a>> for Own {
    fn any(&self, source: &mut Source) -> Line<'a> {
        let event: Event<'_> = any(source);
        let span = |source: &mut Source| Opt(Own).any(source);
        let timed = Timed { ran: span(source), waited: span(source), late: span(source) };
        let shows = timed != Timed::default() && !event.ends_in_text();
        Line {
            at: any(source),
            turn: source.number(),
            seq: source.number(),
            task: source.number(),
            name: source.text(word),
            event,
            timed: (source.raw || shows).then_some(timed),
        }
    }
}

/// Any value of a type that has its own form.
pub(super) fn any<T>(source: &mut Source) -> T
where
    Own: Any<T>,
{
    Own.any(source)
}

pub(super) fn text() -> impl Strategy<Value = String> {
    let odd =
        prop::sample::select(" =,!#@k\n\t\u{e9}\u{2028}\u{7f}:s1-_".chars().collect::<Vec<_>>());
    let wild = prop_oneof![prop::char::range('a', 'z'), odd, any_char()];
    let known = ["ok", "cancelled", "timeout", "never", "none", "at=x:1", "SIGINT", "k=3 = ok, "];
    prop_oneof![
        prop::collection::vec(wild, 0..10).prop_map(String::from_iter),
        prop::sample::select(known.to_vec()).prop_map(str::to_owned),
    ]
}

fn any_char() -> impl Strategy<Value = char> {
    proptest::prelude::any::<char>()
}

/// A source of values as wild as they come.
pub(super) fn source() -> impl Strategy<Value = Source> {
    use proptest::prelude::any;
    let small = || prop_oneof![Just(0), 0..20u64, 9_990..10_010u64, any::<u64>(), Just(u64::MAX)];
    let nanos = small().prop_map(Duration::from_nanos);
    let span = prop_oneof![nanos, small().prop_map(Duration::from_millis), Just(Duration::MAX)];
    (
        prop::collection::vec(small(), 6),
        prop::collection::vec(text(), 4),
        prop::collection::vec(span, 4),
        prop_oneof![prop::char::range('a', 'z'), any_char()],
        prop::collection::vec(any::<u16>().prop_map(usize::from), 40),
    )
        .prop_map(|(numbers, texts, spans, letter, choices)| Source {
            raw: true,
            numbers,
            texts,
            spans,
            letter,
            made: 0,
            choices,
        })
}
