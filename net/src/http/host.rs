//! The grammar of `host [":" port]`, in the Host field and in an absolute target.
//!
//! Pure. It may not resolve or compare names.

/// Whether `value` is a host and perhaps a port. The empty host is one.
pub(crate) fn is_host(value: &[u8]) -> bool {
    let (name_ok, port) = match value {
        [b'[', rest @ ..] => {
            let Some(end) = rest.iter().position(|byte| *byte == b']') else { return false };
            let address = &rest[..end];
            let part = |byte: &u8| byte.is_ascii_hexdigit() || matches!(byte, b':' | b'.');
            (!address.is_empty() && address.iter().all(part), &rest[end + 1..])
        }
        _ => {
            let end = value.iter().position(|byte| *byte == b':').unwrap_or(value.len());
            (is_name(&value[..end]), &value[end..])
        }
    };
    name_ok
        && match port {
            [] => true,
            [b':', digits @ ..] => digits.len() <= 5 && digits.iter().all(u8::is_ascii_digit),
            _ => false,
        }
}

fn is_name(mut name: &[u8]) -> bool {
    while let Some(place) = name.iter().position(|byte| !NAME[*byte as usize]) {
        match &name[place..] {
            [b'%', high, low, rest @ ..] if high.is_ascii_hexdigit() && low.is_ascii_hexdigit() => {
                name = rest;
            }
            _ => return false,
        }
    }
    true
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
        for good in ["", "a", "a.example:80", "127.0.0.1:", "[::1]", "[::1]:8080", "%41b", "a_b"] {
            assert!(is_host(good.as_bytes()), "{good}");
        }
        for bad in [
            "a b", "a/b", "u@a", "a:b", "a:123456", "[::1", "[]", "[::1]x", "%4", "a,b c",
            "a\u{e9}",
        ] {
            assert!(!is_host(bad.as_bytes()), "{bad}");
        }
    }
}
