//! The four forms of a request target (RFC 9112, 3.2), and the grammar of `host [":" port]`, in an
//! absolute target and in the Host field.
//!
//! Pure. It may not decode: what is not ASCII, a control byte or a fragment is refused, and the
//! rest is the handler's.

use std::net::Ipv6Addr;

use super::class::{HOST, is, run};
use super::head::{Method, Span};
use super::status::{Refusal, check};

pub(crate) const BAD_TARGET: Refusal = Refusal::bad("the request target is malformed\n");

const HTTPS: Refusal = Refusal::new(421, "https is not spoken on this connection\n");

/// Where in a target that begins at `at` its authority is. Where there is none, the path begins at
/// once; CONNECT, the only method with an authority alone, is not known here.
pub(crate) fn authority(target: &[u8], at: usize, method: Method) -> Result<Span, Refusal> {
    if target[0] == b'/' || (target == b"*" && method == Method::Options) {
        return Ok(Span { start: at, end: at });
    }
    let begins = |scheme: &[u8]| {
        target.get(..scheme.len()).is_some_and(|prefix| prefix.eq_ignore_ascii_case(scheme))
    };
    // RFC 9110, 7.4: no answer to that over a connection that is not secured.
    check(!begins(b"https://"), HTTPS)?;
    check(begins(b"http://"), BAD_TARGET)?;
    let start = "http://".len();
    let rest = &target[start..];
    let len = rest.iter().position(|byte| matches!(byte, b'/' | b'?')).unwrap_or(rest.len());
    check(len > 0 && rest[0] != b':' && is_host(&rest[..len]), BAD_TARGET)?;
    Ok(Span { start: at + start, end: at + start + len })
}

/// Whether `value` is a host and perhaps a port. The empty host is one.
pub(crate) fn is_host(mut value: &[u8]) -> bool {
    if let [b'[', rest @ ..] = value {
        let Some(end) = rest.iter().position(|byte| *byte == b']') else { return false };
        return is_address(&rest[..end]) && is_port(&rest[end + 1..]);
    }
    loop {
        match &value[run(HOST, value)..] {
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                value = rest;
            }
            port => return is_port(port),
        }
    }
}

/// With its colon; there need not be one.
fn is_port(port: &[u8]) -> bool {
    let is_number = |digits: &[u8]| digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit);
    port.is_empty() || port.strip_prefix(b":").is_some_and(is_number)
}

/// Whether `address` may stand in brackets: one of IPv6, or of a version yet to come.
fn is_address(address: &[u8]) -> bool {
    let Ok(text) = std::str::from_utf8(address) else { return false };
    let Some(later) = text.strip_prefix(['v', 'V']) else {
        return text.parse::<Ipv6Addr>().is_ok();
    };
    later.split_once('.').is_some_and(|(version, rest)| {
        let is_hexadecimal = version.bytes().all(|byte| byte.is_ascii_hexdigit());
        let is_plain = rest.bytes().all(|byte| is(HOST, byte) || byte == b':');
        !version.is_empty() && is_hexadecimal && !rest.is_empty() && is_plain
    })
}

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
