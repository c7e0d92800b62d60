//! The chunked coding of a request's body, undone a piece at a time.
//!
//! A machine over bytes: it neither copies nor keeps them, and may not read or wait.

use super::status::Refusal;
use crate::limits::{DIGITS, EXTENSIONS, TRAILERS};

/// Where in a chunked body the next byte stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// In the digits of a size.
    Size,
    /// In white space after a size: an extension must follow.
    Blank,
    /// In an extension, to be skipped.
    Extension(Extension),
    /// After the CR of a size line.
    SizeEnd,
    /// In data.
    Data,
    /// After data: its CR, then its LF.
    DataEnd,
    DataLf,
    /// At the beginning of a trailer line, or of the empty line.
    Line,
    /// In a trailer's name.
    Name,
    /// In a trailer's value.
    Value,
    /// After the CR of a trailer line.
    ValueEnd,
    /// After the CR of the empty line.
    LastLf,
    /// Nothing of the body is left.
    End,
}

/// Where in `;name=value` the next byte stands. White space is allowed around `;` and `=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Value,
    Quoted,
    /// After a backslash in quotes.
    Escaped,
    /// After the quotes.
    Closed,
    AfterValue,
}

impl Extension {
    /// What `byte` leads to; `None` if it may not stand here. The CR of the line is not its matter.
    fn step(self, byte: u8) -> Option<Extension> {
        use Extension::*;
        Some(match (self, byte) {
            (BeforeName | AfterName | BeforeValue | AfterValue, b' ' | b'\t') => self,
            (BeforeName | Name, byte) if is_token(byte) => Name,
            (BeforeValue | Value, byte) if is_token(byte) => Value,
            (Name, b' ' | b'\t') => AfterName,
            (Name | AfterName, b'=') => BeforeValue,
            (Value | Closed, b' ' | b'\t') => AfterValue,
            (Name | AfterName | Value | Closed | AfterValue, b';') => BeforeName,
            (BeforeValue, b'"') => Quoted,
            (Quoted, b'"') => Closed,
            (Quoted, b'\\') => Escaped,
            (Quoted | Escaped, b'\t' | b' '..=b'~' | 0x80..) => Quoted,
            _ => return None,
        })
    }

    /// Whether the line may end here. White space at the end belongs to no rule.
    fn is_whole(self) -> bool {
        matches!(self, Extension::Name | Extension::Value | Extension::Closed)
    }
}

/// The state between two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunks {
    at: At,
    /// Of the chunk in hand.
    left: u64,
    digits: u8,
    extensions: u32,
    trailers: u32,
}

/// What the next bytes hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// So many bytes of framing, then so many of data; the framing may be all there is.
    Data { skip: usize, len: usize },
    /// So many bytes of framing, and the body is over. The last of them, from `trailers` on, are
    /// of trailer fields.
    End { skip: usize, trailers: usize },
    /// So many bytes of framing, and the trailer fields go on.
    Trailers { skip: usize, trailers: usize },
}

impl Chunks {
    pub(crate) fn new() -> Chunks {
        Chunks { at: At::Size, left: 0, digits: 0, extensions: 0, trailers: 0 }
    }

    /// Goes through framing up to the next data, and through as much data as there is.
    pub(crate) fn next(&mut self, bytes: &[u8]) -> Result<Piece, Refusal> {
        let mut skip = 0;
        // Where the trailer fields begin, if they have.
        let mut trailers = if self.trailers > 0 { Some(0) } else { None };
        loop {
            match self.at {
                At::Data => {
                    let there = bytes.len() - skip;
                    let len = usize::try_from(self.left).map_or(there, |left| left.min(there));
                    self.left -= len as u64;
                    if self.left == 0 {
                        self.at = At::DataEnd;
                    }
                    return Ok(Piece::Data { skip, len });
                }
                At::End => {
                    let trailers = trailers.unwrap_or(skip);
                    return Ok(Piece::End { skip, trailers });
                }
                _ => {}
            }
            let Some(byte) = bytes.get(skip) else {
                return Ok(match trailers {
                    Some(trailers) => Piece::Trailers { skip, trailers },
                    None => Piece::Data { skip, len: 0 },
                });
            };
            self.at = self.step(*byte)?;
            if self.trailers == 1 && trailers.is_none() {
                trailers = Some(skip);
            }
            skip += 1;
        }
    }

    /// The next piece. What is refused changes nothing, so that it is refused again.
    pub(crate) fn next_or_stay(&mut self, bytes: &[u8]) -> Result<Piece, Refusal> {
        let mut next = *self;
        let piece = next.next(bytes)?;
        *self = next;
        Ok(piece)
    }

    fn step(&mut self, byte: u8) -> Result<At, Refusal> {
        const SIZE: Refusal = Refusal::bad("a chunk size is malformed\n");
        const END: Refusal = Refusal::bad("a chunk does not end where its size says\n");
        const TRAILER: Refusal = Refusal::bad("a trailer field is malformed\n");
        Ok(match (self.at, byte) {
            (At::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => {
                if self.digits == DIGITS {
                    return Err(Refusal::bad("a chunk size is too long\n"));
                }
                self.digits += 1;
                let digit = char::from(byte).to_digit(16).expect("a hexadecimal digit");
                self.left = self.left << 4 | u64::from(digit);
                At::Size
            }
            (At::Size, b'\r') if self.digits > 0 => At::SizeEnd,
            (At::Size | At::Blank, b';') if self.digits > 0 => {
                self.extension(At::Extension(Extension::BeforeName))?
            }
            (At::Size | At::Blank, b' ' | b'\t') if self.digits > 0 => self.extension(At::Blank)?,
            (At::Size | At::Blank, _) => return Err(SIZE),
            (At::Extension(extension), b'\r') if extension.is_whole() => At::SizeEnd,
            (At::Extension(extension), byte) => match extension.step(byte) {
                Some(next) => self.extension(At::Extension(next))?,
                None => return Err(Refusal::bad("a chunk extension is malformed\n")),
            },
            (At::SizeEnd, b'\n') => {
                self.digits = 0;
                if self.left == 0 { At::Line } else { At::Data }
            }
            (At::SizeEnd, _) => return Err(SIZE),
            (At::DataEnd, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Size,
            (At::DataEnd | At::DataLf, _) => return Err(END),
            (At::Line, b'\r') => At::LastLf,
            (At::Line, byte) if is_token(byte) => self.trailer(At::Name)?,
            (At::Name, b':') => self.trailer(At::Value)?,
            (At::Name, byte) if is_token(byte) => self.trailer(At::Name)?,
            (At::Value, b'\r') => At::ValueEnd,
            (At::Value, b'\t' | b' '..=b'~' | 0x80..) => self.trailer(At::Value)?,
            (At::ValueEnd, b'\n') => At::Line,
            (At::LastLf, b'\n') => At::End,
            (At::Line | At::Name | At::Value | At::ValueEnd | At::LastLf, _) => {
                return Err(TRAILER);
            }
            (At::Data | At::End, _) => unreachable!("data is not stepped through"),
        })
    }

    fn extension(&mut self, next: At) -> Result<At, Refusal> {
        self.extensions += 1;
        if self.extensions > EXTENSIONS {
            const WHY: &str = "the chunk extensions are too long\n";
            return Err(Refusal::over(413, WHY, "extension_bytes", EXTENSIONS as u64));
        }
        Ok(next)
    }

    fn trailer(&mut self, next: At) -> Result<At, Refusal> {
        self.trailers += 1;
        if self.trailers > TRAILERS {
            const WHY: &str = "the trailer fields are too long\n";
            return Err(Refusal::over(431, WHY, "trailer_bytes", TRAILERS as u64));
        }
        Ok(next)
    }
}

/// Whether `byte` may stand in a field name.
pub(crate) fn is_token(byte: u8) -> bool {
    TOKEN[byte as usize]
}

/// The bytes for which [`is_token`] holds.
pub(crate) static TOKEN: [bool; 256] = letters_digits_and(b"!#$%&'*+-.^_`|~");

/// A table of the letters, the digits and `others`.
pub(crate) const fn letters_digits_and(others: &[u8]) -> [bool; 256] {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let mut index = 0;
    while index < others.len() {
        table[others[index] as usize] = true;
        index += 1;
    }
    table
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data and what follows the body, or the status that refuses it.
    fn decode(bytes: &[u8], step: usize) -> Result<(Vec<u8>, usize), u16> {
        decode_all(bytes, step).map(|(data, _, after)| (data, after))
    }

    /// The data, the trailer lines and what follows the body, or the status that refuses it.
    fn decode_all(mut bytes: &[u8], step: usize) -> Result<(Vec<u8>, Vec<u8>, usize), u16> {
        let (mut chunks, mut data, mut lines) = (Chunks::new(), Vec::new(), Vec::new());
        loop {
            let there = &bytes[..bytes.len().min(step)];
            match chunks.next(there).map_err(|refusal| refusal.status)? {
                Piece::End { skip, trailers } => {
                    lines.extend_from_slice(&bytes[trailers..skip]);
                    return Ok((data, lines, bytes.len() - skip));
                }
                Piece::Trailers { skip: 0, .. } => return Err(0),
                Piece::Trailers { skip, trailers } => {
                    lines.extend_from_slice(&bytes[trailers..skip]);
                    bytes = &bytes[skip..];
                }
                Piece::Data { skip: 0, len: 0 } => return Err(0),
                Piece::Data { skip, len } => {
                    data.extend_from_slice(&bytes[skip..skip + len]);
                    bytes = &bytes[skip + len..];
                }
            }
        }
    }

    #[test]
    fn a_body_is_the_same_however_it_is_cut() {
        let body = b"5\r\nhello\r\n00A;x=\"y\"\r\n, chunked!\r\n0\r\nEtag: z\r\nA:\r\n\r\nGET";
        for step in [1, 2, 3, 7, 100] {
            assert_eq!(decode(body, step), Ok((b"hello, chunked!".to_vec(), 3)), "{step}");
            let lines = decode_all(body, step).expect("it is well-formed").1;
            assert_eq!(lines, b"Etag: z\r\nA:\r\n\r\n", "{step}");
            let none = decode_all(b"1\r\nx\r\n0\r\n\r\n", step);
            assert_eq!(none, Ok((b"x".to_vec(), Vec::new(), 0)), "{step}");
        }
    }

    #[test]
    fn extensions_follow_their_grammar_and_are_passed_over() {
        let good = [";a", ";a=b", " ; a = b", ";a=\"x;\\\"y\"", ";a;b=c;d", "\t;\ta", ";a=\"\""];
        let bad = [
            ";",
            ";;a",
            ";a=",
            ";=b",
            ";a b",
            ";a=\"x",
            ";a=\"x\"y",
            " ",
            ";a=b ;",
            ";a=b ",
            ";a ",
            ";a\rb",
        ];
        let body = |extension: &str| format!("1{extension}\r\nx\r\n0{extension}\r\n\r\n");
        for step in [1, 100] {
            for extension in good {
                let decoded = decode(body(extension).as_bytes(), step);
                assert_eq!(decoded, Ok((b"x".to_vec(), 0)), "{extension:?}");
            }
            for extension in bad {
                let decoded = decode(body(extension).as_bytes(), step);
                assert_eq!(decoded, Err(400), "{extension:?}");
            }
        }
    }

    #[test]
    fn framing_that_can_be_read_in_two_ways_is_refused() {
        let bad: [&[u8]; 18] = [
            b"\r\n",
            b" 5\r\n",
            b"5 \r\n",
            b"5\n",
            b"0x5\r\n",
            b"+5\r\n",
            b"-1\r\n",
            b"g\r\n",
            b"00000000000000000\r\n",
            b"11111111111111111\r\n",
            b"5;\n\r\n",
            b"5;\0\r\n",
            b"5\r\nhelloo\r\n",
            b"5\r\nhello\n",
            b"0\r\n\n",
            b"0\r\na b: c\r\n\r\n",
            b"0\r\n a: c\r\n\r\n",
            b"0\r\na: c\n\r\n",
        ];
        for body in bad {
            assert_eq!(decode(body, 100), Err(400), "{body:?}");
            assert_eq!(decode(body, 1), Err(400), "{body:?}");
        }
        assert_eq!(decode(b"ffffffffffffffff\r\nx", 100), Err(0), "the most that fits");
    }

    #[test]
    fn what_is_thrown_away_is_bounded() {
        let long = |n: usize| "x".repeat(n);
        assert_eq!(decode(format!("1;{}\r\n", long(4096)).as_bytes(), 1000), Err(413));
        assert_eq!(decode(format!("0\r\na:{}", long(16384)).as_bytes(), 1000), Err(431));
    }
}
