//! The classes of bytes that the grammars are made of, in one table.

/// What may stand in a token, such as a method or a field name (RFC 9110, 5.6.2).
pub(crate) const TOKEN: u8 = 1;
/// What may stand in a field value, or in quotes (RFC 9110, 5.5).
pub(crate) const TEXT: u8 = 2;
/// What a request line takes for its target, whether it may stand in one or not.
pub(crate) const WORD: u8 = 4;
/// What may stand in a target (RFC 9112, 3.2). Of visible ASCII, only `#` may not.
pub(crate) const TARGET: u8 = 8;
/// What may stand in a target before its query.
pub(crate) const PATH: u8 = 16;
/// What may stand in the name of a host: unreserved and sub-delims (RFC 3986, 2.2 and 2.3).
pub(crate) const HOST: u8 = 32;

static CLASSES: [u8; 256] = {
    let mut table = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = classes(byte as u8);
        byte += 1;
    }
    table
};

const fn classes(byte: u8) -> u8 {
    let others = match byte {
        b'0'..=b'9' | b'A'..=b'Z' | b'a'..=b'z' => TOKEN | HOST,
        b'!' | b'$' | b'&' | b'\'' | b'*' | b'+' | b'-' | b'.' | b'_' | b'~' => TOKEN | HOST,
        b'#' | b'%' | b'^' | b'`' | b'|' => TOKEN,
        b'(' | b')' | b',' | b';' | b'=' => HOST,
        _ => 0,
    };
    match byte {
        b'#' | 0x80.. => others | TEXT | WORD,
        b'?' => others | TEXT | WORD | TARGET,
        b'!'..=b'~' => others | TEXT | WORD | TARGET | PATH,
        b' ' | b'\t' => TEXT,
        _ => 0,
    }
}

/// Whether `byte` is of that class.
pub(crate) fn is(class: u8, byte: u8) -> bool {
    CLASSES[usize::from(byte)] & class != 0
}

/// How many bytes of that class `bytes` begin with.
#[inline]
pub(crate) fn run(class: u8, bytes: &[u8]) -> usize {
    bytes.iter().position(|byte| !is(class, *byte)).unwrap_or(bytes.len())
}
