//! Neither the splitting of a request nor short reads and writes change a byte of the responses.

use std::time::Duration;

use http_support::corpus::corpus;
use http_support::{Act, Seen, limits, talk_in_pieces};
use net::http::Config;
use proptest::prelude::*;

/// Small enough that some requests of the corpus exceed each of them.
fn small() -> Config {
    limits(|limits| {
        (limits.request_line, limits.fields, limits.head) = (80, 6, 200);
        (limits.body, limits.drain) = (16, 8);
    })
}

/// Everything that the client has received at the end, without a 100, because a client that sends
/// in pieces may seem to wait for one.
fn bytes(seen: &Seen) -> (String, bool) {
    (seen.text.replace("HTTP/1.1 100 Continue\r\n\r\n", ""), seen.closed_at.is_some())
}

/// Sends `request` in these pieces, and lets the server run after each.
fn cut(config: Config, capacity: usize, most: usize, pieces: &[&[u8]]) -> (String, bool) {
    let pause = Duration::from_micros(1);
    let acts: Vec<Act<'_>> =
        pieces.iter().flat_map(|piece| [Act::Send(piece), Act::Sleep(pause)]).collect();
    bytes(&talk_in_pieces(config, capacity, most, &acts))
}

fn whole(config: Config, request: &[u8]) -> (String, bool) {
    bytes(&talk_in_pieces(config, 1 << 20, usize::MAX, &[Act::Send(request)]))
}

/// Each request of the corpus, cut at each place and into pieces of each size.
fn cut_anywhere(config: fn() -> Config) {
    for request in corpus() {
        let expected = whole(config(), &request);
        for at in 1..request.len() {
            let (before, after) = request.split_at(at);
            let seen = cut(config(), 1 << 20, usize::MAX, &[before, after]);
            assert_eq!(seen, expected, "{:?} at {at}", String::from_utf8_lossy(&request));
        }
        for most in [1, 2, 3, 7, 50] {
            let pieces: Vec<&[u8]> = request.chunks(most).collect();
            let seen = cut(config(), 1 << 20, usize::MAX, &pieces);
            let text = String::from_utf8_lossy(&request);
            assert_eq!(seen, expected, "{text:?} {most} at a time");
            let seen = cut(config(), 1 << 20, most, &[&request]);
            assert_eq!(seen, expected, "{text:?} taken {most} at a time");
        }
    }
}

#[test]
fn every_request_of_the_corpus_cut_anywhere_has_the_same_answer() {
    cut_anywhere(Config::default);
}

#[test]
fn every_request_of_the_corpus_cut_anywhere_has_the_same_answer_within_small_limits() {
    cut_anywhere(small);
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn requests_cut_at_random_through_a_narrow_pipe_have_the_same_answers(
        picks in prop::collection::vec(any::<prop::sample::Index>(), 1..5),
        spans in prop::collection::vec(1_usize..40, 1..200),
        capacity in 40_usize..200,
        most in prop_oneof![1_usize..20, Just(usize::MAX)],
    ) {
        let all = corpus();
        let request: Vec<u8> = picks.iter().flat_map(|pick| pick.get(&all).clone()).collect();
        let expected = whole(Config::default(), &request);
        let (mut pieces, mut rest) = (Vec::new(), &request[..]);
        for span in spans.iter().cycle() {
            let (piece, after) = rest.split_at((*span).min(rest.len()));
            pieces.push(piece);
            rest = after;
            if rest.is_empty() {
                break;
            }
        }
        let seen = cut(Config::default(), capacity, most, &pieces);
        prop_assert_eq!(seen, expected, "{:?}", String::from_utf8_lossy(&request));
    }
}
