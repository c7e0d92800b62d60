//! Decides whether a connection continues after a whole response. No other function does.
//!
//! [`persists`] is a pure function of what the request, the response and the server say. The
//! connection asks it before a head is written, because the head tells the client, and again when
//! the rest of the body has been read, because that may not be what the client announced. The table
//! in its tests has a row for each reason.

/// The fate of a connection after a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Next {
    Continue,
    Close(Why),
}

/// The reason why a connection closes. If several reasons hold when it is asked for, the first one
/// counts. [`persists`]
/// returns those up to `Drain`. The others are for a connection without a request, or without a
/// whole response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Why {
    /// The body breaks a rule or a limit, or the client is lost.
    Broken,
    /// The client waits for permission to send its body. The server has given none, so the next
    /// bytes may be the body or the next request.
    Awaited,
    /// More of the body is left than the server reads to keep the connection.
    Long,
    /// The client asked to close, or speaks HTTP/1.0, and has sent its whole request.
    Asked,
    /// The client asked to close, and some of its body was not read.
    Unread,
    /// The handler asked to close, or the response is a refusal.
    Handler,
    /// The end of the connection is the end of the response.
    Unbounded,
    /// The request is the last that the limit allows.
    Requests,
    /// The connection must make room for another, its time is over, or its client has left.
    Leaves,
    /// The server stops, and no other request has arrived.
    Drain,
    /// Nothing arrived until the last look: in time, in a drain, or before the place was needed.
    Silent,
    /// The client closed its side, and no whole request was left.
    Ended,
    /// The head was refused.
    Refused,
    /// The connection is over the limit, or had to give way. It gets 503 if it can.
    Full,
    /// The handler failed after its response had begun, or did not finish it.
    Failed,
    /// The handler dropped the write of a piece half-way.
    Cut,
    /// The client is gone, or took too long.
    Lost,
}

/// The rest of the request: what the client has announced and the server has not read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Rest {
    /// The whole request was read.
    Read,
    /// The rest can be read and thrown away, or the handler still reads it.
    Fine,
    Broken,
    Awaited,
    Long,
}

/// The part of the request in the decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Asks {
    /// Whether the client wants the connection to continue (`wants_more` in `grammar::head`).
    pub(crate) wants: bool,
    pub(crate) rest: Rest,
}

/// The part of the response in the decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Says {
    pub(crate) closes: bool,
    /// Whether the body ends with the connection.
    pub(crate) is_unbounded: bool,
}

/// The part of the server in the decision.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Allows {
    /// Whether the request is the last that the limit allows.
    pub(crate) is_last: bool,
    pub(crate) leaves: bool,
    /// Whether the server stops, and no byte of another request is in the input.
    pub(crate) drains: bool,
}

/// Decides whether the connection continues after a response.
#[inline(always)]
pub(crate) fn persists(request: Asks, response: Says, server: Allows) -> Next {
    Next::Close(match request.rest {
        Rest::Broken => Why::Broken,
        Rest::Awaited => Why::Awaited,
        Rest::Long => Why::Long,
        Rest::Read if !request.wants => Why::Asked,
        Rest::Fine if !request.wants => Why::Unread,
        _ if response.closes => Why::Handler,
        _ if response.is_unbounded => Why::Unbounded,
        _ if server.is_last => Why::Requests,
        _ if server.leaves => Why::Leaves,
        _ if server.drains => Why::Drain,
        Rest::Read | Rest::Fine => return Next::Continue,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const ASKS: Asks = Asks { wants: true, rest: Rest::Read };
    const SAYS: Says = Says { closes: false, is_unbounded: false };
    const ALLOWS: Allows = Allows { is_last: false, leaves: false, drains: false };

    #[test]
    fn each_reason_closes_and_nothing_else_does() {
        let rest = |rest| Asks { rest, ..ASKS };
        let table = [
            (ASKS, SAYS, ALLOWS, Next::Continue),
            (rest(Rest::Broken), SAYS, ALLOWS, Next::Close(Why::Broken)),
            (rest(Rest::Awaited), SAYS, ALLOWS, Next::Close(Why::Awaited)),
            (rest(Rest::Long), SAYS, ALLOWS, Next::Close(Why::Long)),
            (rest(Rest::Fine), SAYS, ALLOWS, Next::Continue),
            (Asks { wants: false, ..ASKS }, SAYS, ALLOWS, Next::Close(Why::Asked)),
            (Asks { wants: false, rest: Rest::Fine }, SAYS, ALLOWS, Next::Close(Why::Unread)),
            (ASKS, Says { closes: true, ..SAYS }, ALLOWS, Next::Close(Why::Handler)),
            (ASKS, Says { is_unbounded: true, ..SAYS }, ALLOWS, Next::Close(Why::Unbounded)),
            (ASKS, SAYS, Allows { is_last: true, ..ALLOWS }, Next::Close(Why::Requests)),
            (ASKS, SAYS, Allows { leaves: true, ..ALLOWS }, Next::Close(Why::Leaves)),
            (ASKS, SAYS, Allows { drains: true, ..ALLOWS }, Next::Close(Why::Drain)),
        ];
        for (request, response, server, next) in table {
            assert_eq!(persists(request, response, server), next);
        }
    }

    /// Tries all 2^6 times 5 inputs.
    #[test]
    fn it_continues_if_no_reason_holds_and_otherwise_the_first_reason_counts() {
        for bits in 0..64_u8 {
            let bit = |n: u8| bits >> n & 1 == 1;
            let says = Says { closes: bit(1), is_unbounded: bit(2) };
            let allows = Allows { is_last: bit(3), leaves: bit(4), drains: bit(5) };
            for rest in [Rest::Read, Rest::Fine, Rest::Broken, Rest::Awaited, Rest::Long] {
                let next = persists(Asks { wants: !bit(0), rest }, says, allows);
                let order = [
                    if rest == Rest::Fine { Why::Unread } else { Why::Asked },
                    Why::Handler,
                    Why::Unbounded,
                    Why::Requests,
                    Why::Leaves,
                    Why::Drain,
                ];
                let first = (0..6).find(|n| bit(*n)).map(|n| order[usize::from(n)]);
                let expected = match rest {
                    Rest::Read | Rest::Fine => first.map_or(Next::Continue, Next::Close),
                    Rest::Broken => Next::Close(Why::Broken),
                    Rest::Awaited => Next::Close(Why::Awaited),
                    Rest::Long => Next::Close(Why::Long),
                };
                assert_eq!(next, expected);
            }
        }
    }
}
