//! The pieces of a message, drawn by a seed.

use std::time::Duration;

use crate::draw::draw;

/// A piece, and the time of its arrival.
#[derive(Clone, Copy)]
pub struct Piece {
    pub at: Duration,
    pub text: &'static str,
}

/// Seed 0 is the scenario of the page.
pub fn of(seed: u64) -> Vec<Piece> {
    let pieces = match seed {
        0 => vec![(0, "he"), (1000, "llo"), (2000, ".")],
        // Pieces at once, one without text, a full stop inside a piece, and a piece of the next
        // message.
        1 => vec![
            (0, "the "),
            (0, "v1.2"),
            (0, " is"),
            (700, ""),
            (700, " out"),
            (700, "."),
            (700, "no"),
        ],
        // After many false alarms, the message has one character.
        3 => vec![(0, ""), (500, "."), (500, ".")],
        _ => drawn(seed),
    };
    let piece = |(millis, text)| Piece { at: Duration::from_millis(millis), text };
    pieces.into_iter().map(piece).collect()
}

/// Times at which the wire is ready and no piece comes.
pub fn false_alarms(seed: u64) -> Vec<Duration> {
    let millis = match seed {
        0 => vec![],
        3 => (1..=300).collect(),
        _ => vec![130, 350],
    };
    millis.into_iter().map(Duration::from_millis).collect()
}

fn drawn(seed: u64) -> Vec<(u64, &'static str)> {
    const TEXTS: [&str; 7] = ["yes", " and", " no", " 3.5", ", ", ".. ", ""];
    let (mut at, mut pieces) = (0, Vec::new());
    for nth in 0..150 + draw(seed, 0, 6) {
        // About half of the pieces arrive together with the piece before them.
        at += [0, 0, 0, 250, 900, 1500][draw(seed, nth + 1000, 6) as usize];
        pieces.push((at, TEXTS[draw(seed, nth + 2000, 7) as usize]));
    }
    let end = ["end.", " 3.", "...", "."][draw(seed, 3, 4) as usize];
    pieces.push((at + 250 * draw(seed, 1, 2), end));
    if draw(seed, 2, 2) == 0 {
        pieces.push((pieces[pieces.len() - 1].0, "more"));
    }
    pieces
}
