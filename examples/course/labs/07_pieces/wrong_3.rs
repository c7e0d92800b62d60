// says: `reader` sleeps and looks again; nobody needs to look at a descriptor: wait for it, and the kernel says when
//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::Error;
use std::time::Duration;

use super::kernel::sleep;

/// Reads pieces until one ends with a full stop. Gives the message.
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
