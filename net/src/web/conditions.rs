//! Conditional requests and ranges: which part of a file to send, by RFC 9110, sections 13 and 14.
//!
//! These are pure functions. This module must not know where the file is or how it is read.

use std::ops::Range;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::parse_http_date;

/// The state of a file, as the fields of a response describe it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct FileState {
    pub(crate) len: u64,
    /// The strong entity tag, with its quotes.
    pub(crate) tag: String,
    /// The time of the last change, in seconds since 1970.
    pub(crate) modified: u64,
}

/// The decision about a request.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    /// Send 200 and the whole file.
    Whole,
    /// Send 206 and this part.
    Part(Range<u64>),
    /// Send 304, because the client has the file already.
    NotModified,
    /// Send 412, because a condition of the request is false.
    Failed,
    /// Send 416, because the file has no such part.
    NoSuchPart,
}

/// Decides how to respond to a GET or a HEAD. Ranges do not apply to HEAD. `fields` returns the
/// values of all fields with a name.
pub(crate) fn judge<'f>(
    state: &FileState,
    is_head: bool,
    fields: impl Fn(&str) -> Vec<&'f [u8]>,
) -> Verdict {
    let date = |name: &str| match fields(name)[..] {
        [value] => seconds(value),
        // A field that may occur once is ignored if it occurs twice.
        _ => None,
    };
    let matching = fields("If-Match");
    if !matching.is_empty() {
        if !is_any(&matching, &state.tag, Comparison::Strong) {
            return Verdict::Failed;
        }
    } else if date("If-Unmodified-Since").is_some_and(|since| state.modified > since) {
        return Verdict::Failed;
    }
    let known = fields("If-None-Match");
    if !known.is_empty() {
        if is_any(&known, &state.tag, Comparison::Weak) {
            return Verdict::NotModified;
        }
    } else if date("If-Modified-Since").is_some_and(|since| state.modified <= since) {
        return Verdict::NotModified;
    }
    let [range] = fields("Range")[..] else { return Verdict::Whole };
    let same = match fields("If-Range")[..] {
        [] => true,
        [value] if value.first() == Some(&b'"') => value == state.tag.as_bytes(),
        // A date cannot distinguish two versions made within one second, or versions made before
        // and after a clock was set back (RFC 9110, 13.1.5 and 8.8.2.2). So with a date, send the
        // whole file.
        _ => false,
    };
    if is_head || !same { Verdict::Whole } else { part(range, state.len) }
}

fn seconds(value: &[u8]) -> Option<u64> {
    let date: SystemTime = parse_http_date(std::str::from_utf8(value).ok()?).ok()?;
    date.duration_since(UNIX_EPOCH).ok().as_ref().map(Duration::as_secs)
}

/// The rule by which two entity tags are compared.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Comparison {
    /// The strong comparison, by which a weak tag equals no other tag.
    Strong,
    /// The weak comparison, which ignores whether a tag is weak.
    Weak,
}

/// Returns whether a list of entity tags is `*` or contains `tag`. Parsing of a line stops at the
/// first malformed tag.
fn is_any(lines: &[&[u8]], tag: &str, comparison: Comparison) -> bool {
    lines.iter().any(|line| {
        let mut rest = line.trim_ascii();
        if rest == b"*" {
            return true;
        }
        loop {
            while let [b',' | b' ' | b'\t', more @ ..] = rest {
                rest = more;
            }
            let weak = rest.starts_with(b"W/");
            let quoted = if weak { &rest[2..] } else { rest };
            let [b'"', inner @ ..] = quoted else { return false };
            // A tag can contain commas, but no quotes.
            let Some(end) = inner.iter().position(|byte| *byte == b'"') else { return false };
            let (found, more) = quoted.split_at(end + 2);
            if found == tag.as_bytes() && !(weak && comparison == Comparison::Strong) {
                return true;
            }
            rest = more;
        }
    })
}

/// Decides how to respond to a `Range` field. If it has several ranges, the decision is the whole
/// file. RFC 9110 allows this, and so no list of ranges can cost more than the file.
fn part(value: &[u8], len: u64) -> Verdict {
    const UNIT: &[u8] = b"bytes=";
    let Some((unit, set)) = value.split_at_checked(UNIT.len()) else { return Verdict::Whole };
    if !unit.eq_ignore_ascii_case(UNIT) {
        return Verdict::Whole;
    }
    let mut specs = set.split(|byte| *byte == b',').map(<[u8]>::trim_ascii);
    // A list can have empty elements.
    let (spec, more) = {
        let mut specs = specs.by_ref().filter(|spec| !spec.is_empty());
        (specs.next(), specs.next())
    };
    let (Some(spec), None) = (spec, more) else { return Verdict::Whole };
    let Some(dash) = spec.iter().position(|byte| *byte == b'-') else { return Verdict::Whole };
    let (first, last) = (number(&spec[..dash]), number(&spec[dash + 1..]));
    match (first, last) {
        (Digits::Number(first), Digits::Number(last)) if last < first => Verdict::Whole,
        (Digits::Number(first), Digits::None | Digits::Number(_)) if first >= len => {
            Verdict::NoSuchPart
        }
        (Digits::Number(first), Digits::Number(last)) => {
            Verdict::Part(first..last.saturating_add(1).min(len))
        }
        (Digits::Number(first), Digits::None) => Verdict::Part(first..len),
        (Digits::None, Digits::Number(0)) => Verdict::NoSuchPart,
        // The last bytes of an empty file are the whole file.
        (Digits::None, Digits::Number(_)) if len == 0 => Verdict::Whole,
        (Digits::None, Digits::Number(count)) => Verdict::Part(len.saturating_sub(count)..len),
        (Digits::None, Digits::None) | (Digits::Other, _) | (_, Digits::Other) => Verdict::Whole,
    }
}

enum Digits {
    None,
    /// A number. Larger numbers become `u64::MAX`, because no file is as long as that.
    Number(u64),
    Other,
}

fn number(text: &[u8]) -> Digits {
    if text.is_empty() {
        return Digits::None;
    }
    let digit = |sum: Option<u64>, byte: &u8| {
        let digit = byte.is_ascii_digit().then(|| u64::from(byte - b'0'))?;
        Some(sum?.saturating_mul(10).saturating_add(digit))
    };
    text.iter().fold(Some(0), digit).map_or(Digits::Other, Digits::Number)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The time `Sun, 06 Nov 1994 08:49:37 GMT`, in seconds since 1970.
    const MODIFIED: u64 = 784_111_777;
    const THEN: &str = "Sun, 06 Nov 1994 08:49:37 GMT";
    const BEFORE: &str = "Sun, 06 Nov 1994 08:49:36 GMT";
    const AFTER: &str = "Sunday, 06-Nov-94 08:49:38 GMT";

    fn judged(len: u64, is_head: bool, fields: &[(&str, &str)]) -> Verdict {
        let state = FileState { len, tag: "\"a,b\"".to_owned(), modified: MODIFIED };
        judge(&state, is_head, |name| {
            let found = fields.iter().filter(|(known, _)| *known == name);
            found.map(|(_, value)| value.as_bytes()).collect()
        })
    }

    #[test]
    fn preconditions_are_looked_at_in_the_order_of_rfc_9110_13_2_2() {
        use Verdict::{Failed, NotModified, Whole};
        let table: &[(&[(&str, &str)], Verdict)] = &[
            (&[], Whole),
            (&[("If-Match", "*")], Whole),
            (&[("If-Match", "\"x\", \"a,b\"")], Whole),
            (&[("If-Match", "W/\"a,b\"")], Failed),
            (&[("If-Match", "\"x\"")], Failed),
            (&[("If-Match", "\"x\""), ("If-Match", "\"a,b\"")], Whole),
            (&[("If-Match", "a,b")], Failed),
            (&[("If-Match", "\"a,b\""), ("If-Unmodified-Since", BEFORE)], Whole),
            (&[("If-Unmodified-Since", BEFORE)], Failed),
            (&[("If-Unmodified-Since", THEN)], Whole),
            (&[("If-Unmodified-Since", "yesterday")], Whole),
            (&[("If-None-Match", "*")], NotModified),
            (&[("If-None-Match", "\"a\",\"a,b\"")], NotModified),
            (&[("If-None-Match", ", W/\"a,b\"")], NotModified),
            (&[("If-None-Match", "\"a\", \"b\"")], Whole),
            (&[("If-None-Match", "\"a")], Whole),
            (&[("If-None-Match", "\"a\""), ("If-Modified-Since", AFTER)], Whole),
            (&[("If-Modified-Since", THEN)], NotModified),
            (&[("If-Modified-Since", AFTER)], NotModified),
            (&[("If-Modified-Since", BEFORE)], Whole),
            (&[("If-Modified-Since", "")], Whole),
            (&[("If-Modified-Since", AFTER), ("If-Modified-Since", AFTER)], Whole),
            (&[("If-Match", "\"x\""), ("If-None-Match", "*")], Failed),
            (&[("If-None-Match", "*"), ("Range", "bytes=0-1")], NotModified),
        ];
        for (fields, verdict) in table {
            for is_head in [false, true] {
                assert_eq!(judged(10, is_head, fields), *verdict, "{fields:?}");
            }
        }
    }

    #[test]
    fn a_range_is_the_part_that_it_names() {
        use Verdict::{NoSuchPart, Part, Whole};
        for (range, verdict) in [
            ("bytes=0-0", Part(0..1)),
            ("Bytes=2-4", Part(2..5)),
            ("bytes=2-", Part(2..10)),
            ("bytes=2-99999999999999999999999", Part(2..10)),
            ("bytes=-3", Part(7..10)),
            ("bytes=-30", Part(0..10)),
            ("bytes= ,3-3 ,", Part(3..4)),
            ("bytes=9-9", Part(9..10)),
            ("bytes=10-", NoSuchPart),
            ("bytes=10-11", NoSuchPart),
            ("bytes=99999999999999999999999-", NoSuchPart),
            ("bytes=-0", NoSuchPart),
            ("bytes=4-2", Whole),
            ("bytes=0-1,3-4", Whole),
            ("bytes=", Whole),
            ("bytes=-", Whole),
            ("bytes=a-b", Whole),
            ("bytes=+1-2", Whole),
            ("bytes=1", Whole),
            ("bytes=1-2-3", Whole),
            ("bytes", Whole),
            ("lines=0-1", Whole),
        ] {
            assert_eq!(judged(10, false, &[("Range", range)]), verdict, "{range}");
            assert_eq!(judged(10, true, &[("Range", range)]), Whole, "{range}");
        }
        assert_eq!(judged(0, false, &[("Range", "bytes=0-")]), NoSuchPart);
        assert_eq!(judged(0, false, &[("Range", "bytes=-1")]), Whole);
        assert_eq!(judged(10, false, &[("Range", "bytes=0-1"), ("Range", "bytes=0-1")]), Whole);
    }

    #[test]
    fn if_range_holds_for_the_same_state_only() {
        let range = ("Range", "bytes=1-1");
        for (value, same) in [
            ("\"a,b\"", true),
            ("W/\"a,b\"", false),
            ("\"x\"", false),
            (THEN, false),
            (BEFORE, false),
            (AFTER, false),
            ("", false),
        ] {
            let wanted = if same { Verdict::Part(1..2) } else { Verdict::Whole };
            assert_eq!(judged(10, false, &[range, ("If-Range", value)]), wanted, "{value}");
        }
    }
}
