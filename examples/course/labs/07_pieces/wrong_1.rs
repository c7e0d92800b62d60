// says: line #0008: `reader` waits before it has tried to read; a piece may be there from the start, so wait only after `None`
// demand: Each wait comes after `None`.
//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::Error;

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let mut message = String::new();
    while !message.ends_with('.') {
        wire.io.readable().await?;
        message += wire.try_read().await.unwrap_or_default();
    }
    Ok(message)
}
