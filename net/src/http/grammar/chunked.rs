//! The chunked coding of a body (RFC 9112, 7.1): its decoder, for the server and the client.
//!
//! Pure functions over bytes. They must not read, write or wait.

use crate::http::grammar::head::{Refusal, TEXT, TOKEN, check, is};
use crate::limits::{DIGITS, EXTENSIONS, PER_EXTENSION, TRAILERS};

const LONG_EXTENSIONS: Refusal = {
    let why = "the chunk extensions are too long\n";
    Refusal::over(413, why, "extension_bytes", EXTENSIONS as u64)
};
const LONG_TRAILERS: Refusal = {
    let why = "the trailer fields are too long\n";
    Refusal::over(431, why, "trailer_bytes", TRAILERS as u64)
};

/// The place of the next byte in a chunked body. A variant named `...Lf` follows the CR of a line.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum At {
    /// The place before the first digit of a chunk size.
    Start,
    /// The place after a digit of a chunk size.
    Size,
    /// The place in an extension after a chunk size. Extensions are skipped.
    Extension(Extension),
    SizeLf,
    /// The place in the data of a chunk, or after the data if nothing of the chunk is left.
    Data,
    DataLf,
    /// The place at the beginning of a trailer field, or of the empty line at the end.
    Line,
    /// The place in the name of a trailer field.
    Name,
    /// The place in the value of a trailer field.
    Value,
    ValueLf,
    LastLf,
    /// The place after the whole body.
    End,
}

/// The place of the next byte in a chunk extension, `;name=value`. White space is allowed around
/// `;` and `=`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Extension {
    /// The place in white space after the chunk size.
    AfterSize,
    BeforeName,
    Name,
    AfterName,
    BeforeValue,
    Value,
    Quoted,
    /// The place after a backslash in a value in quotes.
    Escaped,
    /// The place after the closing quote of a value.
    Closed,
    AfterValue,
}

impl Extension {
    /// The place after `byte`; `None` if `byte` is not allowed here.
    fn step(self, byte: u8) -> Option<At> {
        use Extension::*;
        Some(At::Extension(match (self, byte) {
            // The grammar allows no trailing white space.
            (Name | Value | Closed, b'\r') => return Some(At::SizeLf),
            (AfterSize | Name | AfterName | Value | Closed | AfterValue, b';') => BeforeName,
            (AfterSize | BeforeName | AfterName | BeforeValue | AfterValue, b' ' | b'\t') => self,
            (BeforeName | Name, byte) if is(TOKEN, byte) => Name,
            (Name, b' ' | b'\t') => AfterName,
            (Name | AfterName, b'=') => BeforeValue,
            (BeforeValue | Value, byte) if is(TOKEN, byte) => Value,
            (BeforeValue, b'"') => Quoted,
            (Quoted, b'"') => Closed,
            (Quoted, b'\\') => Escaped,
            (Quoted | Escaped, byte) if is(TEXT, byte) => Quoted,
            (Value | Closed, b' ' | b'\t') => AfterValue,
            _ => return None,
        }))
    }
}

/// The parser of a chunked body, between two pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Chunks {
    at: At,
    /// The number of bytes left in the chunk in hand.
    left: u64,
    digits: u8,
    /// The number of bytes of extensions that exceeds what the data so far allows.
    extensions: u32,
    trailers: u32,
    /// Whether a trailer field may continue in a line that begins with white space.
    folds: bool,
}

/// The next part of a chunked body, as [`Chunks::next`] finds it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Piece {
    /// `skip` bytes of framing, then `len` bytes of data. `len` may be zero.
    Data { skip: usize, len: usize },
    /// `skip` bytes of framing, and then the body is over. The bytes from `trailers` on are trailer
    /// fields.
    End { skip: usize, trailers: usize },
    /// `skip` bytes of framing, and then the trailer fields continue.
    Trailers { skip: usize, trailers: usize },
}

impl Chunks {
    pub(crate) fn new() -> Chunks {
        Chunks { at: At::Start, left: 0, digits: 0, extensions: 0, trailers: 0, folds: false }
    }

    /// Makes a chunk parser for a client, which must accept what a server refuses (RFC 9112, 5.2).
    pub(crate) fn of_a_response() -> Chunks {
        Chunks { folds: true, ..Chunks::new() }
    }

    /// Parses the framing up to the next data, and takes the data. A refusal changes nothing, so
    /// that the next call refuses again.
    pub(crate) fn next(&mut self, bytes: &[u8]) -> Result<Piece, Refusal> {
        let (mut next, mut skip, mut trailers) = (*self, 0, 0);
        while let Some(byte) = bytes.get(skip)
            && next.is_in_framing()
        {
            next.step(*byte)?;
            skip += 1;
            if next.trailers == 0 {
                trailers = skip;
            }
        }
        let piece = match next.at {
            At::Data => {
                let there = bytes.len() - skip;
                let len = usize::try_from(next.left).map_or(there, |left| left.min(there));
                next.left -= len as u64;
                Piece::Data { skip, len }
            }
            At::End => Piece::End { skip, trailers },
            _ if next.trailers > 0 => Piece::Trailers { skip, trailers },
            _ => Piece::Data { skip, len: 0 },
        };
        *self = next;
        Ok(piece)
    }

    fn is_in_framing(&self) -> bool {
        match self.at {
            At::Data => self.left == 0,
            at => at != At::End,
        }
    }

    /// Parses one byte of framing.
    fn step(&mut self, byte: u8) -> Result<(), Refusal> {
        self.at = match (self.at, byte) {
            (At::Start | At::Size, b'0'..=b'9' | b'a'..=b'f' | b'A'..=b'F') => self.digit(byte)?,
            (At::Size, b'\r') => At::SizeLf,
            (At::Size, b' ' | b'\t') => At::Extension(Extension::AfterSize),
            (At::Size, b';') => At::Extension(Extension::BeforeName),
            (At::Extension(extension), byte) => extension.step(byte).ok_or(self.malformed())?,
            (At::SizeLf, b'\n') if self.left == 0 => At::Line,
            (At::SizeLf, b'\n') => {
                let paid = u32::try_from(self.left / PER_EXTENSION).unwrap_or(u32::MAX);
                self.extensions = self.extensions.saturating_sub(paid);
                At::Data
            }
            (At::Data, b'\r') => At::DataLf,
            (At::DataLf, b'\n') => At::Start,
            (At::Line, b'\r') => At::LastLf,
            (At::Line, b' ' | b'\t') if self.folds && self.trailers > 0 => At::Value,
            (At::Line | At::Name, byte) if is(TOKEN, byte) => At::Name,
            (At::Name, b':') => At::Value,
            (At::Value, b'\r') => At::ValueLf,
            (At::Value, byte) if is(TEXT, byte) => At::Value,
            (At::ValueLf, b'\n') => At::Line,
            (At::LastLf, b'\n') => At::End,
            _ => return Err(self.malformed()),
        };
        self.count()
    }

    fn digit(&mut self, byte: u8) -> Result<At, Refusal> {
        if self.at == At::Start {
            self.digits = 0;
        }
        check(self.digits < DIGITS, Refusal::bad("a chunk size is too long\n"))?;
        self.digits += 1;
        let digit = char::from(byte).to_digit(16).expect("a hexadecimal digit");
        self.left = self.left << 4 | u64::from(digit);
        Ok(At::Size)
    }

    /// Counts a byte of an extension or a trailer field. Refuses the body if these are too long.
    fn count(&mut self) -> Result<(), Refusal> {
        match self.at {
            At::Extension(_) => self.extensions += 1,
            At::Name | At::Value => self.trailers += 1,
            _ => {}
        }
        check(self.extensions <= EXTENSIONS, LONG_EXTENSIONS)?;
        check(self.trailers <= TRAILERS, LONG_TRAILERS)
    }

    fn malformed(&self) -> Refusal {
        Refusal::bad(match self.at {
            At::Start | At::Size | At::SizeLf | At::Extension(Extension::AfterSize) => {
                "a chunk size is malformed\n"
            }
            At::Extension(_) => "a chunk extension is malformed\n",
            At::Data | At::DataLf => "a chunk does not end where its size says\n",
            _ => "a trailer field is malformed\n",
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Decodes a chunked body, `step` bytes at a time. Returns the data and the number of bytes
    /// after the body, or the status of the refusal.
    fn decode(bytes: &[u8], step: usize) -> Result<(Vec<u8>, usize), u16> {
        decode_all(bytes, step).map(|(data, _, after)| (data, after))
    }

    /// Decodes like `decode`, and also returns the trailer lines.
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

    /// In an upload that is signed piece by piece, each chunk has a signature.
    #[test]
    fn extensions_may_be_on_any_number_of_chunks_that_are_large_enough() {
        let body = |count: usize, size: usize| {
            let signature = "f".repeat(64);
            let line = format!("{size:x};chunk-signature={signature}\r\n");
            let chunk = [line.as_bytes(), &vec![b'x'; size], b"\r\n"].concat();
            let end = format!("0;chunk-signature={signature}\r\n\r\n");
            [chunk.repeat(count), end.into_bytes()].concat()
        };
        for step in [7, 1000, 1 << 20] {
            let size = |count, size| decode(&body(count, size), step).map(|(data, _)| data.len());
            assert_eq!(size(100, 8192), Ok(819_200), "{step}");
            assert_eq!(size(1000, 656), Ok(656_000), "{step}");
            assert_eq!(size(47, 1), Ok(47), "{step}");
            assert_eq!(size(64, 1), Err(413), "{step}");
            assert_eq!(size(1000, 512), Err(413), "{step}");
        }
    }

    #[test]
    fn what_is_thrown_away_is_bounded() {
        let long = |n: usize| "x".repeat(n);
        assert_eq!(decode(format!("1;{}\r\n", long(4096)).as_bytes(), 1000), Err(413));
        assert_eq!(decode(format!("0\r\na:{}", long(16384)).as_bytes(), 1000), Err(431));
    }
}
