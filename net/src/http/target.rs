//! The four forms of a request target (RFC 9112, 3.2).
//!
//! Pure. It may not decode: what is not ASCII, a control byte or a fragment is refused, and the
//! rest is the handler's.

use super::head::Method;
use super::host::is_host;
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
