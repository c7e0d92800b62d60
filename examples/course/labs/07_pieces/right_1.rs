//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::Error;

/// The next piece. It needs no sleep.
async fn piece(wire: &Wire) -> Result<&'static str, Error> {
    loop {
        if let Some(piece) = wire.try_read().await {
            return Ok(piece);
        }
        wire.io.readable().await?;
    }
}

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let mut message = String::new();
    loop {
        let piece = piece(wire).await?;
        message.push_str(piece);
        if piece.ends_with('.') {
            return Ok(message);
        }
    }
}
