// says: line #0010: `reader` has read `he`, and waits; the next piece may be there already, so try again, and wait only after `None`
// demand: Each wait comes after `None`.
//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::Error;

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let mut message = String::new();
    loop {
        message += wire.try_read().await.unwrap_or_default();
        if message.ends_with('.') {
            return Ok(message);
        }
        // The next piece is announced.
        wire.io.readable().await?;
    }
}
