// says: line #0580: the message is `.. yes and and.. ,   ... .5 and no..  and and`, and not `.. yes and and.. ,   ...  and and.. .. ..  3.`: it ends with the first piece that ends with a full stop, and not before
// demand: The message is `hello.`, at 2 s.
//! Yours: a message that comes in pieces.

use super::given::Wire;
use super::kernel::Error;

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let mut pieces = [""; 100];
    for place in &mut pieces {
        *place = loop {
            match wire.try_read().await {
                Some(piece) => break piece,
                None => wire.io.readable().await?,
            }
        };
        if place.ends_with('.') {
            break;
        }
    }
    Ok(pieces.concat())
}
