//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::Error;

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let mut message = String::new();
    while !message.ends_with('.') {
        match wire.try_read().await {
            Some(piece) => message += piece,
            None => wire.io.readable().await?,
        }
    }
    Ok(message)
}
