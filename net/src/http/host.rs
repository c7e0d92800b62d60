//! The grammar of `host [":" port]`, in the Host field and in an absolute target.
//!
//! Pure. It may not resolve or compare names.

use std::net::Ipv6Addr;

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
static NAME: [bool; 256] = {
    let mut table = [false; 256];
    let mut byte = 0;
    while byte < 256 {
        table[byte] = (byte as u8).is_ascii_alphanumeric();
        byte += 1;
    }
    let others = b"-._~!$&'()*+,;=";
    let mut index = 0;
    while index < others.len() {
        table[others[index] as usize] = true;
        index += 1;
    }
    table
};

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
