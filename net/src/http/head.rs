//! The head of a request, as offsets into its bytes. It may not know how it was parsed.

/// A method that the server knows; any other is answered with 501.
///
/// There is no HEAD: a handler is asked for it as for [`Method::Get`], and the connection leaves
/// the body out.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// Also stands for HEAD.
    Get,
    /// Hands something in.
    Post,
    /// Replaces.
    Put,
    /// Removes.
    Delete,
    /// Changes a part.
    Patch,
    /// Asks what can be asked.
    Options,
    /// Asks for the request itself.
    Trace,
}

/// The version that a client speaks. The server answers as 1.1, within what the client can read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// HTTP/1.0: no chunks, closes unless asked to keep alive.
    Http10,
    /// HTTP/1.1.
    Http11,
}

/// How the end of a request's body is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Framing {
    Length(u64),
    Chunked,
}

/// Bytes of a head, counted from its first one.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Span {
    pub(crate) start: usize,
    pub(crate) end: usize,
}

impl Span {
    pub(crate) fn of(self, bytes: &[u8]) -> &[u8] {
        &bytes[self.start..self.end]
    }
}

/// A head that may be answered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Head {
    /// With the empty line.
    pub(crate) len: usize,
    pub(crate) method: Method,
    /// Whether the method was HEAD.
    pub(crate) no_body: bool,
    pub(crate) version: Version,
    /// Of an absolute target, else empty.
    pub(crate) authority: Span,
    /// Empty for an absolute target without one.
    pub(crate) path: Span,
    /// With its question mark, empty without one.
    pub(crate) query: Span,
    /// Where the field lines begin.
    pub(crate) fields: usize,
    pub(crate) framing: Framing,
    pub(crate) keep_alive: bool,
    /// Whether the client waits for a 100 before it sends the body.
    pub(crate) expects: bool,
}

impl Head {
    /// Stands for a head that was refused.
    pub(crate) const REFUSED: Head = Head {
        len: 0,
        method: Method::Get,
        no_body: false,
        version: Version::Http11,
        authority: Span { start: 0, end: 0 },
        path: Span { start: 0, end: 0 },
        query: Span { start: 0, end: 0 },
        fields: 0,
        framing: Framing::Length(0),
        keep_alive: false,
        expects: false,
    };

    /// The path as it is to be seen, of the one that came: an absolute target may have none.
    #[inline]
    pub(crate) fn shown_path<'p>(&self, path: &'p [u8]) -> &'p [u8] {
        let has_query = self.query.start != self.query.end;
        match path {
            [] if self.method == Method::Options && !has_query => b"*",
            [] => b"/",
            path => path,
        }
    }
}

/// The value of a query's first `name=value` pair of that name.
pub(crate) fn query_value<'q>(query: &'q str, name: &str) -> Option<&'q str> {
    let mut pairs = query.split('&').map(|pair| pair.split_once('=').unwrap_or((pair, "")));
    pairs.find(|(found, _)| *found == name).map(|(_, value)| value)
}

/// The values of the fields called `name`, among the field lines of a head that was accepted.
pub(crate) fn values<'h>(fields: &'h [u8], name: &str) -> impl Iterator<Item = &'h [u8]> {
    fields.split(|byte| *byte == b'\n').filter_map(move |line| {
        let (found, rest) = line.split_at_checked(name.len())?;
        let [b':', value @ ..] = rest else { return None };
        found.eq_ignore_ascii_case(name.as_bytes()).then(|| value.trim_ascii())
    })
}
