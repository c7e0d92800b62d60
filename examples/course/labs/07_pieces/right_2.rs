//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::{Error, note};

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let mut pieces = Vec::new();
    while pieces.last().is_none_or(|last: &&str| !last.ends_with('.')) {
        let Some(piece) = wire.try_read().await else {
            wire.io.readable().await?;
            continue;
        };
        note(format_args!("piece {}", pieces.len() + 1));
        pieces.push(piece);
    }
    Ok(pieces.concat())
}
