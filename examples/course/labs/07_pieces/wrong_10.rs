// says: your program panicked at src/lab.rs:16: the wire is readable
// demand: Each wait comes after `None`.
//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::Error;

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let mut message = String::new();
    while !message.ends_with('.') {
        let piece = match wire.try_read().await {
            Some(piece) => piece,
            None => {
                wire.io.readable().await?;
                wire.try_read().await.expect("the wire is readable")
            }
        };
        message += piece;
    }
    Ok(message)
}
