// says: line #0042: the message is `the v1.2 is out.no`, and not `the v1.2 is out.`: what comes after its full stop is the next message
// demand: The message is `hello.`, at 2 s.
//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::Error;

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let (mut message, mut is_over) = (String::new(), false);
    loop {
        // Whatever is there.
        while let Some(piece) = wire.try_read().await {
            message += piece;
            is_over |= piece.ends_with('.');
        }
        if is_over {
            return Ok(message);
        }
        wire.io.readable().await?;
    }
}
