// says: line #0013: the message is `the v1.2 is`, and not `the v1.2 is out.`: it ends with the first piece that ends with a full stop, and not before
// demand: The message is `hello.`, at 2 s.
//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::Error;

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let (mut message, mut pieces) = (String::new(), 0);
    while pieces < 3 {
        match wire.try_read().await {
            Some(piece) => {
                message += piece;
                pieces += 1;
            }
            None => wire.io.readable().await?,
        }
    }
    Ok(message)
}
