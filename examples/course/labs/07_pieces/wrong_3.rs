// says: line #0011: `reader` sleeps before it tries again; no sleep is needed: wait for the descriptor, and the kernel says when it is ready
// demand: There is no sleep.
//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::Error;
use std::time::Duration;

use super::kernel::sleep;

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let mut message = String::new();
    while !message.ends_with('.') {
        match wire.try_read().await {
            Some(piece) => message += piece,
            None => _ = sleep(Duration::from_millis(100)).await,
        }
    }
    Ok(message)
}
