// says: line #0011: the message is `he`, and not `hello.`: `None` is no end, it means not yet
// demand: The message is `hello.`, at 2 s.
//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::Error;

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let mut message = String::new();
    while let Some(piece) = wire.try_read().await {
        message += piece;
    }
    Ok(message)
}
