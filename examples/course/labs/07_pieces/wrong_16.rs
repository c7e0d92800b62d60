// says: line #1820: the message is `..`, and not `.`: what comes after its full stop is the next message
// demand: The message is `hello.`, at 2 s.
//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::Error;

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let mut message = String::new();
    loop {
        match wire.try_read().await {
            Some(piece) => message.push_str(piece),
            None => wire.io.readable().await?,
        }
        // A full stop alone is a message, too.
        if message.len() > 1 && message.ends_with('.') {
            return Ok(message);
        }
    }
}
