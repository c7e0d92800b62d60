//! The Redis protocol, version 2 (RESP2): how requests are read and replies are written.

use std::fmt::Arguments;
use std::io::Write;
use std::str::FromStr;

/// The most bytes of a request.
pub const REQUEST: usize = 512 * 1024;
/// The most words of a request, the command included.
pub const WORDS: usize = 1024;

/// The words of a request, and its length.
pub type Request<'a> = (Vec<&'a [u8]>, usize);

/// Finds the line at `start`. Returns it without its end, and the start of the next line.
fn line(input: &[u8], start: usize) -> Option<(&[u8], usize)> {
    let end = start + input[start..].iter().position(|byte| *byte == b'\n')?;
    let line = &input[start..end];
    Some((line.strip_suffix(b"\r").unwrap_or(line), end + 1))
}

/// Reads a number in decimal digits.
pub fn number<N: FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// Reads the request at the start of `input`. Returns `None` if a part of it is still missing, and
/// an error if it is not RESP. The words of `*2 $3 GET $1 k` are counted; a line that does not
/// begin with `*` is an *inline* request, with words between spaces.
pub fn request(input: &[u8]) -> Result<Option<Request<'_>>, &'static str> {
    if input.first() != Some(&b'*') {
        return Ok(line(input, 0).map(|(line, used)| {
            let words = line.split(u8::is_ascii_whitespace).filter(|word| !word.is_empty());
            (words.collect(), used)
        }));
    }
    let Some((count, mut used)) = line(input, 1) else { return Ok(None) };
    let count: i64 = number(count).ok_or("invalid multibulk length")?;
    // Redis takes an empty request, and one of less than nothing, for no request.
    let count = count.max(0) as usize;
    if count > WORDS {
        return Err("invalid multibulk length");
    }
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let Some((length, start)) = line(input, used) else { return Ok(None) };
        let length = length.strip_prefix(b"$").ok_or("expected '$'")?;
        let length: usize = number(length).ok_or("invalid bulk length")?;
        if length > REQUEST {
            return Err("invalid bulk length");
        }
        used = start + length + 2;
        let Some(word) = input.get(start..used) else { return Ok(None) };
        words.push(word.strip_suffix(b"\r\n").ok_or("expected an end of line")?);
    }
    Ok(Some((words, used)))
}

/// Writes formatted text.
pub fn put(out: &mut Vec<u8>, text: Arguments<'_>) {
    out.write_fmt(text).expect("a vector takes every byte");
}

/// Writes an integer.
pub fn integer(out: &mut Vec<u8>, number: i64) {
    put(out, format_args!(":{number}\r\n"));
}

/// Writes a string of any bytes, or that there is none.
pub fn bulk(out: &mut Vec<u8>, text: Option<&[u8]>) {
    let Some(text) = text else { return out.extend_from_slice(b"$-1\r\n") };
    put(out, format_args!("${}\r\n", text.len()));
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}
