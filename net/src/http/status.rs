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

/// The status line, with its end; `None` for a code without a registered reason.
pub(crate) fn line(status: u16) -> Option<&'static [u8]> {
    macro_rules! lines {
        ($($code:literal $reason:literal)*) => {
            match status {
                $($code => Some(concat!("HTTP/1.1 ", $code, " ", $reason, "\r\n").as_bytes()),)*
                _ => None,
            }
        };
    }
    lines! {
        200 "OK"
        201 "Created"
        202 "Accepted"
        204 "No Content"
        206 "Partial Content"
        301 "Moved Permanently"
        302 "Found"
        303 "See Other"
        304 "Not Modified"
        307 "Temporary Redirect"
        308 "Permanent Redirect"
        400 "Bad Request"
        401 "Unauthorized"
        403 "Forbidden"
        404 "Not Found"
        405 "Method Not Allowed"
        406 "Not Acceptable"
        408 "Request Timeout"
        409 "Conflict"
        410 "Gone"
        411 "Length Required"
        412 "Precondition Failed"
        413 "Content Too Large"
        414 "URI Too Long"
        415 "Unsupported Media Type"
        416 "Range Not Satisfiable"
        417 "Expectation Failed"
        421 "Misdirected Request"
        422 "Unprocessable Content"
        429 "Too Many Requests"
        431 "Request Header Fields Too Large"
        500 "Internal Server Error"
        501 "Not Implemented"
        502 "Bad Gateway"
        503 "Service Unavailable"
        504 "Gateway Timeout"
        505 "HTTP Version Not Supported"
    }
}
