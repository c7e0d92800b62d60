//! The four forms of a request target (RFC 9112, 3.2), and the grammar of `host [":" port]`, in an
//! absolute target and in the Host field.
//!
//! Pure. It may not decode: what is not ASCII, a control byte or a fragment is refused, and the
//! rest is the handler's.

use std::net::Ipv6Addr;

use super::chunked::letters_digits_and;
use super::head::Method;
use super::status::Refusal;

/// Where in a target its parts begin; the query goes to the end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Target {
    /// Empty unless the form is absolute.
    pub(crate) authority: (usize, usize),
    /// Empty for an absolute form without one.
    pub(crate) path: usize,
    /// With its question mark.
    pub(crate) query: usize,
}

/// Takes a target apart. CONNECT, the only method with an authority alone, is not known here.
pub(crate) fn target(target: &[u8], method: Method) -> Result<Target, Refusal> {
    const BAD: Refusal = Refusal::bad("the request target is malformed\n");
    // One pass: the query begins at the first question mark, whatever stands before it.
    let query = target.iter().take_while(|byte| BEFORE_QUERY[**byte as usize]).count();
    if !target[query..].iter().all(|byte| byte.is_ascii() && *byte != b'#') {
        return Err(BAD);
    }
    if target[0] == b'/' {
        return Ok(Target { authority: (0, 0), path: 0, query });
    }
    if target == b"*" {
        let whole = Target { authority: (0, 0), path: 0, query: 1 };
        return if method == Method::Options { Ok(whole) } else { Err(BAD) };
    }
    let scheme = |name: &[u8]| {
        let prefix = target.get(..name.len())?;
        prefix.eq_ignore_ascii_case(name).then_some(name.len())
    };
    if scheme(b"https://").is_some() {
        // RFC 9110, 7.4: no answer to that over a connection that is not secured.
        return Err(Refusal::new(421, "https is not spoken on this connection\n"));
    }
    let start = scheme(b"http://").ok_or(BAD)?;
    let rest = &target[start..];
    let len = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    if len == 0 || rest[0] == b':' || !is_host(&rest[..len]) {
        return Err(BAD);
    }
    let path = start + len;
    Ok(Target { authority: (start, path), path, query })
}

/// ASCII but for what ends a path, or begins a fragment.
static BEFORE_QUERY: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 128 {
        table[byte as usize] = byte != b'?' && byte != b'#';
        byte += 1;
    }
    table
};

/// Whether `value` is a host and perhaps a port. The empty host is one.
pub(crate) fn is_host(value: &[u8]) -> bool {
    match value {
        [b'[', rest @ ..] => {
            let Some(end) = rest.iter().position(|byte| *byte == b']') else { return false };
            is_address(&rest[..end]) && is_port(&rest[end + 1..])
        }
        _ => is_name_and_port(value),
    }
}

fn is_name_and_port(mut value: &[u8]) -> bool {
    loop {
        let plain = run_of(&NAME, value);
        match &value[plain..] {
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                value = rest;
            }
            port => return is_port(port),
        }
    }
}

/// With its colon; there need not be one.
fn is_port(port: &[u8]) -> bool {
    match port {
        [] => true,
        [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
        _ => false,
    }
}

/// Whether `address` may stand in brackets: one of IPv6, or of a version yet to come.
#[cold]
fn is_address(address: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(address) else { return false };
    let Some(later) = text.strip_prefix(['v', 'V']) else {
        return text.parse::<Ipv6Addr>().is_ok();
    };
    let later = later.split_once('.').map(|(number, rest)| (number.as_bytes(), rest.as_bytes()));
    later.is_some_and(|(number, rest)| {
        let part = |byte: &u8| NAME[*byte as usize] || *byte == b':';
        !number.is_empty()
            && number.iter().all(u8::is_ascii_hexdigit)
            && !rest.is_empty()
            && rest.iter().all(part)
    })
}

/// How long the name is, with its port if it has one, that `bytes` begin with. It may be empty, and
/// more of a host may follow it.
#[inline]
pub(crate) fn plain_host(bytes: &[u8]) -> usize {
    let name = run_of(&NAME, bytes);
    match &bytes[name..] {
        [b':', rest @ ..] => {
            let digits = rest.iter().take(5).take_while(|byte| byte.is_ascii_digit());
            name + 1 + digits.count()
        }
        _ => name,
    }
}

/// How many bytes `bytes` begins with that are in `table`.
#[inline]
pub(crate) fn run_of(table: &[bool; 256], bytes: &[u8]) -> usize {
    let is_in = |byte: &u8| table[*byte as usize];
    let run = |bytes: &[u8]| bytes.iter().take_while(|byte| is_in(byte)).count();
    let mut len = 0;
    let mut rest = bytes;
    while let Some((four, behind)) = rest.split_first_chunk::<4>() {
        // All four, without a branch for each.
        if !four.iter().fold(true, |all, byte| all & is_in(byte)) {
            return len + run(four);
        }
        len += 4;
        rest = behind;
    }
    len + run(rest)
}

/// Unreserved and sub-delims of RFC 3986.
static NAME: [bool; 256] = letters_digits_and(b"-._~!$&'()*+,;=");

#[cfg(test)]
mod tests {
    use super::is_host;

    #[test]
    fn hosts_are_names_addresses_and_ports_and_nothing_else() {
        for good in [
            "",
            "a",
            "a.example:80",
            "127.0.0.1:",
            "[::1]",
            "[::1]:8080",
            "%41b",
            "a_b",
            "[v1.a:b]",
        ] {
            assert!(is_host(good.as_bytes()), "{good}");
        }
        for bad in [
            "a b",
            "a/b",
            "u@a",
            "a:b",
            "a:123456",
            "[::1",
            "[]",
            "[::1]x",
            "%4",
            "a,b c",
            "[:::]",
            "[1]",
            "[::1%25eth0]",
            "[v.a]",
            "[v1]",
            "[v1.]",
            "[\u{e9}]",
            "a\u{e9}",
        ] {
            assert!(!is_host(bad.as_bytes()), "{bad}");
        }
    }
}
