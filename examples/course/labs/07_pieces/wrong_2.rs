// says: line #0021 is a second line `register`, and one is enough: each `Io` is registered for itself, so wait with the `io` of the wire
// demand: There is one `register` line.
//! Yours: a message that comes in pieces.

use super::given::DESCRIPTOR;
use super::given::Wire;
use super::kernel::Error;
use super::kernel::{Io, Scripted};

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let mut message = String::new();
    while !message.ends_with('.') {
        match wire.try_read().await {
            Some(piece) => message += piece,
            None => Io::new(Scripted(DESCRIPTOR)).readable().await?,
        }
    }
    Ok(message)
}
