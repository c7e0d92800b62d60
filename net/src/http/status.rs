//! Status codes: their lines, and the refusals that the server itself answers with.
//!
//! Plain data. It may not look at a request.

/// Why a request is answered by the server and not by its handler. The connection closes after it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Refusal {
    pub(crate) status: u16,
    /// One sentence, sent as the body.
    pub(crate) why: &'static str,
    /// The limit that was hit, as the log shows it.
    pub(crate) cap: Option<Cap>,
}

/// A limit that was hit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Cap {
    pub(crate) name: &'static str,
    pub(crate) limit: u64,
}

impl Refusal {
    pub(crate) const fn new(status: u16, why: &'static str) -> Refusal {
        Refusal { status, why, cap: None }
    }

    /// A request that does not follow the grammar.
    pub(crate) const fn bad(why: &'static str) -> Refusal {
        Refusal::new(400, why)
    }

    pub(crate) const fn over(
        status: u16,
        why: &'static str,
        name: &'static str,
        limit: u64,
    ) -> Refusal {
        Refusal { status, why, cap: Some(Cap { name, limit }) }
    }
}

/// The answer to a request that comes after the grace of a drain, or that its end cuts off.
pub(crate) const STOPS: Refusal = Refusal::new(503, "the server stops\n");

/// The answer to a connection that is one too many. Without a body: nobody has looked whether it
/// asks with HEAD.
pub(crate) const FULL: Refusal = Refusal::new(503, "");

/// Refuses what does not hold.
#[inline(always)]
pub(crate) fn check(holds: bool, otherwise: Refusal) -> Result<(), Refusal> {
    if holds { Ok(()) } else { Err(otherwise) }
}

/// The status line, with its end, of a code with a registered reason (RFC 9110, 15); else empty.
pub(crate) fn line(status: u16) -> &'static str {
    match status {
        200 => "HTTP/1.1 200 OK\r\n",
        201 => "HTTP/1.1 201 Created\r\n",
        202 => "HTTP/1.1 202 Accepted\r\n",
        204 => "HTTP/1.1 204 No Content\r\n",
        206 => "HTTP/1.1 206 Partial Content\r\n",
        301 => "HTTP/1.1 301 Moved Permanently\r\n",
        302 => "HTTP/1.1 302 Found\r\n",
        303 => "HTTP/1.1 303 See Other\r\n",
        304 => "HTTP/1.1 304 Not Modified\r\n",
        307 => "HTTP/1.1 307 Temporary Redirect\r\n",
        308 => "HTTP/1.1 308 Permanent Redirect\r\n",
        400 => "HTTP/1.1 400 Bad Request\r\n",
        401 => "HTTP/1.1 401 Unauthorized\r\n",
        403 => "HTTP/1.1 403 Forbidden\r\n",
        404 => "HTTP/1.1 404 Not Found\r\n",
        405 => "HTTP/1.1 405 Method Not Allowed\r\n",
        406 => "HTTP/1.1 406 Not Acceptable\r\n",
        408 => "HTTP/1.1 408 Request Timeout\r\n",
        409 => "HTTP/1.1 409 Conflict\r\n",
        410 => "HTTP/1.1 410 Gone\r\n",
        411 => "HTTP/1.1 411 Length Required\r\n",
        412 => "HTTP/1.1 412 Precondition Failed\r\n",
        413 => "HTTP/1.1 413 Content Too Large\r\n",
        414 => "HTTP/1.1 414 URI Too Long\r\n",
        415 => "HTTP/1.1 415 Unsupported Media Type\r\n",
        416 => "HTTP/1.1 416 Range Not Satisfiable\r\n",
        417 => "HTTP/1.1 417 Expectation Failed\r\n",
        421 => "HTTP/1.1 421 Misdirected Request\r\n",
        422 => "HTTP/1.1 422 Unprocessable Content\r\n",
        429 => "HTTP/1.1 429 Too Many Requests\r\n",
        431 => "HTTP/1.1 431 Request Header Fields Too Large\r\n",
        500 => "HTTP/1.1 500 Internal Server Error\r\n",
        501 => "HTTP/1.1 501 Not Implemented\r\n",
        502 => "HTTP/1.1 502 Bad Gateway\r\n",
        503 => "HTTP/1.1 503 Service Unavailable\r\n",
        504 => "HTTP/1.1 504 Gateway Timeout\r\n",
        505 => "HTTP/1.1 505 HTTP Version Not Supported\r\n",
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use super::line;

    #[test]
    fn a_status_line_says_its_code() {
        for status in 200..600 {
            let line = line(status);
            assert!(line.is_empty() || line.starts_with(&format!("HTTP/1.1 {status} ")), "{line}");
            assert!(line.is_empty() || line.ends_with("\r\n"), "{line}");
        }
    }
}
