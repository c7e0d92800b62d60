//! Requests with mistakes, for tests by chance.

use proptest::prelude::*;
use proptest::sample::Index;

/// The possible mistakes in a request.
#[derive(Clone, Debug)]
enum Mistake {
    Byte(Index, u8),
    Insert(Index, &'static str),
    Remove(Index, usize),
    Repeat(Index, usize),
}

const WORDS: &[&str] = &[
    "\r\n",
    "\n",
    "\r",
    " ",
    "\t",
    ":",
    ";",
    "\0",
    "0",
    "ffffffff",
    "Host: a\r\n",
    "\r\n\r\n",
    "Content-Length: 3\r\n",
    "Transfer-Encoding: chunked\r\n",
    "Expect: 100-continue\r\n",
    "Connection: close\r\n",
    "HTTP/1.1",
    "0\r\n\r\n",
    "GET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "\u{e9}",
];

fn mistakes() -> impl Strategy<Value = Vec<Mistake>> {
    let mistake = prop_oneof![
        (any::<Index>(), any::<u8>()).prop_map(|(at, byte)| Mistake::Byte(at, byte)),
        (any::<Index>(), prop::sample::select(WORDS))
            .prop_map(|(at, word)| Mistake::Insert(at, word)),
        (any::<Index>(), 1_usize..12).prop_map(|(at, len)| Mistake::Remove(at, len)),
        (any::<Index>(), 1_usize..60).prop_map(|(at, len)| Mistake::Repeat(at, len)),
    ];
    prop::collection::vec(mistake, 0..6)
}

fn make(mistake: &Mistake, request: &mut Vec<u8>) {
    let span = |at: &Index, len: usize| {
        let start = at.index(request.len() + 1);
        start..(start + len).min(request.len())
    };
    match mistake {
        Mistake::Byte(at, byte) if !request.is_empty() => {
            let place = at.index(request.len());
            request[place] = *byte;
        }
        Mistake::Byte(..) => {}
        Mistake::Insert(at, word) => {
            let span = span(at, 0);
            request.splice(span, word.bytes());
        }
        Mistake::Remove(at, len) => {
            let span = span(at, *len);
            request.drain(span);
        }
        Mistake::Repeat(at, len) => {
            let span = span(at, *len);
            let again = request[span.clone()].to_vec();
            request.splice(span.end..span.end, again);
        }
    }
}

/// One to three of these in a row, most of them with mistakes; or noise.
pub fn requests(all: Vec<Vec<u8>>) -> impl Strategy<Value = Vec<u8>> {
    let picks = prop::collection::vec((prop::sample::select(all), mistakes()), 1..4);
    let wrong = picks.prop_map(|picks| {
        let with = |(mut request, mistakes): (Vec<u8>, Vec<Mistake>)| {
            mistakes.iter().for_each(|mistake| make(mistake, &mut request));
            request
        };
        picks.into_iter().flat_map(with).collect()
    });
    prop_oneof![4 => wrong, 1 => prop::collection::vec(any::<u8>(), 0..300)]
}
