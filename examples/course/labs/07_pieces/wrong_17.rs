// says: line #0058: the message is ``, and not `.`: `None` is no end, it means not yet
// demand: The message is `hello.`, at 2 s.
//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::Error;

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let mut message = String::new();
    let mut false_alarms = 0;
    while false_alarms < 8 {
        match wire.try_read().await {
            Some(piece) => {
                message.push_str(piece);
                if piece.ends_with('.') {
                    break;
                }
                false_alarms = 0;
            }
            None => {
                wire.io.readable().await?;
                false_alarms += 1;
            }
        }
    }
    Ok(message)
}
