//! How a line is put together: pieces at the end of a text, numbers and times among them.
//!
//! The machinery of `std::fmt` costs more than all else that a line takes, so it is used only
//! where a line is asked for by it.

use std::borrow::Cow;

use traps::time::Time;

use super::words::Span;

/// What has a form in the log.
pub(super) trait Print {
    /// Writes it at the end of `out`.
    fn print(&self, out: &mut Vec<u8>);
}

/// Prints one piece after the other.
macro_rules! put {
    ($out:expr, $($piece:expr),+) => {{
        $($crate::trace::pen::Print::print(&$piece, $out);)+
    }};
}
pub(super) use put;

/// Gives types that have a form in the log the same one wherever they are shown.
macro_rules! shown {
    ($($name:ty),+) => {
        $(impl std::fmt::Display for $name {
            fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
                let mut text = Vec::new();
                $crate::trace::pen::Print::print(self, &mut text);
                f.pad(std::str::from_utf8(&text).expect("it is put together from texts"))
            }
        })+
    };
}
pub(super) use shown;

impl<T: Print + ?Sized> Print for &T {
    fn print(&self, out: &mut Vec<u8>) {
        (**self).print(out);
    }
}

impl Print for str {
    #[inline]
    fn print(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

impl Print for Cow<'_, str> {
    #[inline]
    fn print(&self, out: &mut Vec<u8>) {
        out.extend_from_slice(self.as_bytes());
    }
}

/// `00` to `99`.
const PAIRS: [[u8; 2]; 100] = {
    let mut pairs = [[b'0'; 2]; 100];
    let mut n = 0;
    while n < 100 {
        pairs[n] = [b'0' + (n / 10) as u8, b'0' + (n % 10) as u8];
        n += 1;
    }
    pairs
};

/// Fills it with a number, its zeros before it included.
#[inline]
fn fill(digits: &mut [u8], mut number: u64) {
    let (first, pairs) = digits.as_rchunks_mut::<2>();
    for pair in pairs.iter_mut().rev() {
        *pair = PAIRS[(number % 100) as usize];
        number /= 100;
    }
    if let [first] = first {
        *first = b'0' + (number % 10) as u8;
    }
}

#[inline]
fn length(number: u64) -> usize {
    number.checked_ilog10().map_or(1, |tens| tens as usize + 1)
}

/// Adds so many spaces, 32 at most, and gives what was added.
#[inline]
fn add(out: &mut Vec<u8>, length: usize) -> &mut [u8] {
    let start = out.len();
    // More, and then off again: a copy of a fixed size is no call.
    out.extend_from_slice(&[b' '; 32]);
    out.truncate(start + length);
    &mut out[start..]
}

impl Print for u64 {
    #[inline]
    fn print(&self, out: &mut Vec<u8>) {
        Right(*self, 0).print(out);
    }
}

impl Print for u32 {
    #[inline]
    fn print(&self, out: &mut Vec<u8>) {
        u64::from(*self).print(out);
    }
}

/// The number of a line: `#0012`.
pub(super) struct Nr(pub(super) u64);

impl Print for Nr {
    #[inline]
    fn print(&self, out: &mut Vec<u8>) {
        out.push(b'#');
        fill(add(out, length(self.0).max(4)), self.0);
    }
}

/// A number or a time, to the right of a column of that width, 32 at most.
pub(super) struct Right<T>(pub(super) T, pub(super) usize);

impl Print for Right<u64> {
    #[inline]
    fn print(&self, out: &mut Vec<u8>) {
        let length = length(self.0);
        let width = self.1.max(length);
        fill(&mut add(out, width)[width - length..], self.0);
    }
}

impl Print for Right<Time> {
    #[inline]
    fn print(&self, out: &mut Vec<u8>) {
        const NEVER: &[u8] = b"never";
        let micros = self.0.as_micros();
        let (seconds, micros) = (micros / 1_000_000, micros % 1_000_000);
        let length = if self.0 == Time::NEVER { NEVER.len() } else { length(seconds) + 7 };
        let width = self.1.max(length);
        let text = &mut add(out, width)[width - length..];
        if self.0 == Time::NEVER {
            return text.copy_from_slice(NEVER);
        }
        let (whole, part) = text.split_at_mut(length - 7);
        fill(whole, seconds);
        part[0] = b'.';
        fill(&mut part[1..], micros);
    }
}

/// Text, with spaces behind it up to a column of eight.
pub(super) struct Left<'a>(pub(super) &'a str);

impl Print for Left<'_> {
    #[inline]
    fn print(&self, out: &mut Vec<u8>) {
        let end = out.len() + self.0.len().max(8);
        out.extend_from_slice(self.0.as_bytes());
        out.extend_from_slice(&[b' '; 8]);
        out.truncate(end);
    }
}

impl Print for Time {
    #[inline]
    fn print(&self, out: &mut Vec<u8>) {
        Right(*self, 0).print(out);
    }
}

impl Print for Span {
    fn print(&self, out: &mut Vec<u8>) {
        let end = Time::ZERO + self.0;
        end.print(out);
        if end != Time::NEVER {
            while out.pop_if(|last| *last == b'0').is_some() {}
            out.pop_if(|last| *last == b'.');
            out.push(b's');
        }
    }
}

/// A field that may be missing: a space and `key=value`, or nothing.
pub(super) struct Field<T>(pub(super) &'static str, pub(super) Option<T>);

impl<T: Print> Print for Field<T> {
    #[inline]
    fn print(&self, out: &mut Vec<u8>) {
        if let Field(key, Some(value)) = self {
            put!(out, " ", *key, "=", value);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_and_times_look_as_they_do_elsewhere() {
        let tens = (0..20).map(|power| 10_u64.pow(power));
        let numbers =
            tens.flat_map(|ten| [ten - 1, ten, ten + 1]).chain([0, u64::MAX - 1, u64::MAX]);
        for number in numbers {
            let (mut ours, mut theirs) = (Vec::new(), String::new());
            let time = Time::from_micros(number);
            for width in [0, 3, 9, 32] {
                put!(&mut ours, number, Nr(number), Right(number, width), Right(time, width), time);
                theirs += &format!("{number}#{number:04}{number:>width$}{time:>width$}{time}");
            }
            assert_eq!(String::from_utf8(ours).unwrap(), theirs);
        }
    }
}
