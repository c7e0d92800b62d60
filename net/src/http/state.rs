//! The states of a connection. `connection` moves it from one to the next, and `guard` chooses by
//! them which connection closes for another.

use super::persists::Why;

/// The state of a connection. The head of `connection` draws the states, and lists what ends each.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) enum State {
    /// The connection waits for its handshake, or for the first byte of its first request.
    New,
    /// The connection waits for the first byte of its next request.
    Idle,
    /// The connection was told to close, to make room for another, while it was new or idle.
    Leaving,
    /// The connection reads a head.
    #[default]
    Head,
    /// The connection waits for the rest of a head.
    Partial,
    /// The connection has a request: its handler runs, its body arrives, or its response goes out.
    Request,
    /// The connection waits for a piece of a body.
    Body,
    /// The connection waits for room in memory for more of a body.
    Room,
    /// The connection waits for the peer to take some of what was written.
    Write,
    /// The connection owes no further response. It lingers, so that the peer can read the last one.
    /// A connection with [`Why::Full`] first gets 503 if it can.
    Closing(Why),
    /// The connection is over.
    Closed,
}

impl State {
    pub(crate) const FULL: State = State::Closing(Why::Full);
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn the_drawing_at_the_head_of_connection_has_the_states_of_the_type() {
        let drawn = include_str!("connection.rs").split("```").nth(1).expect("there is a drawing");
        let words = drawn.split(|c: char| !c.is_ascii_alphabetic());
        let is_state = |word: &&str| word.starts_with(|c: char| c.is_ascii_uppercase());
        let drawn: BTreeSet<&str> = words.filter(is_state).collect();
        let all = [
            State::New,
            State::Idle,
            State::Leaving,
            State::Head,
            State::Partial,
            State::Request,
            State::Body,
            State::Room,
            State::Write,
            State::FULL,
            State::Closed,
        ];
        let named = |state: State| match state {
            State::New => "New",
            State::Idle => "Idle",
            State::Leaving => "Leaving",
            State::Head => "Head",
            State::Partial => "Partial",
            State::Request => "Request",
            State::Body => "Body",
            State::Room => "Room",
            State::Write => "Write",
            State::Closing(_) => "Closing",
            State::Closed => "Closed",
        };
        assert_eq!(drawn, all.into_iter().map(named).collect());
    }
}
