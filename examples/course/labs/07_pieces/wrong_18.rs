// says: line #0610: the message is ``, and not `.`: `None` is no end, it means not yet
// demand: The message is `hello.`, at 2 s.
//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::Error;

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let (mut message, mut alarms) = (String::new(), 0);
    // After a hundred false alarms nothing will come.
    while alarms < 100 {
        match wire.try_read().await {
            Some(piece) => {
                alarms = 0;
                message.push_str(piece);
                if piece.ends_with('.') {
                    break;
                }
            }
            None => {
                alarms += 1;
                wire.io.readable().await?;
            }
        }
    }
    Ok(message)
}
