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
        // Two pieces at once, a full stop inside a piece, and a piece of the next message.
        1 => vec![(0, "the "), (0, "v1.2"), (0, " is"), (700, " out"), (700, "."), (700, "no")],
        _ => drawn(seed),
    };
    let piece = |(millis, text)| Piece { at: Duration::from_millis(millis), text };
    pieces.into_iter().map(piece).collect()
}

fn drawn(seed: u64) -> Vec<(u64, &'static str)> {
    const TEXTS: [&str; 6] = ["yes", " and", " no", " 3.5", ", ", ".. "];
    let (mut at, mut pieces) = (0, Vec::new());
    for nth in 0..1 + draw(seed, 0, 6) {
        // About half of the pieces arrive together with the piece before them.
        at += [0, 0, 0, 250, 900, 1500][draw(seed, nth + 10, 6) as usize];
        pieces.push((at, TEXTS[draw(seed, nth + 20, 6) as usize]));
    }
    pieces.push((at + 250 * draw(seed, 1, 2), "end."));
    if draw(seed, 2, 2) == 0 {
        pieces.push((pieces[pieces.len() - 1].0, "more"));
    }
    pieces
}
