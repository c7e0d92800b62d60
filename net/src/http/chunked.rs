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
    /// In an extension, to be skipped.
    Extension,
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
    /// So many bytes of framing, and the body is over.
    End { skip: usize },
}

impl Chunks {
    pub(crate) fn new() -> Chunks {
        Chunks { at: At::Size, left: 0, digits: 0, extensions: 0, trailers: 0 }
    }

    /// Goes through framing up to the next data, and through as much data as there is.
    pub(crate) fn next(&mut self, bytes: &[u8]) -> Result<Piece, Refusal> {
        let mut skip = 0;
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
                At::End => return Ok(Piece::End { skip }),
                _ => {}
            }
            let Some(byte) = bytes.get(skip) else { return Ok(Piece::Data { skip, len: 0 }) };
            self.at = self.step(*byte)?;
            skip += 1;
        }
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
            (At::Size, b';') if self.digits > 0 => self.extension()?,
            (At::Size, _) => return Err(SIZE),
            (At::Extension, b'\r') => At::SizeEnd,
            (At::Extension, b'\t' | b' '..=b'~' | 0x80..) => self.extension()?,
            (At::Extension, _) => return Err(Refusal::bad("a chunk extension is malformed\n")),
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

    fn extension(&mut self) -> Result<At, Refusal> {
        self.extensions += 1;
        if self.extensions > EXTENSIONS {
            const WHY: &str = "the chunk extensions are too long\n";
            return Err(Refusal::over(413, WHY, "extension_bytes", EXTENSIONS as u64));
        }
        Ok(At::Extension)
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
    byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The data and what follows the body, or the status that refuses it.
    fn decode(mut bytes: &[u8], step: usize) -> Result<(Vec<u8>, usize), u16> {
        let (mut chunks, mut data) = (Chunks::new(), Vec::new());
        loop {
            let there = &bytes[..bytes.len().min(step)];
            match chunks.next(there).map_err(|refusal| refusal.status)? {
                Piece::End { skip } => return Ok((data, bytes.len() - skip)),
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
