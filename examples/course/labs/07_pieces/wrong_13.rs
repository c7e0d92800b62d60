// says: line #0871: `reader` has read ` 3.`, and `message` does not return; the message ends with this full stop
// demand: The message is `hello.`, at 2 s.
//! Yours: a message that comes in pieces.

use std::pin::Pin;

use super::given::Wire;
use super::kernel::Error;

type Rest<'w> = Pin<Box<dyn Future<Output = Result<Vec<&'static str>, Error>> + 'w>>;

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    let mut pieces = rest(wire, false).await?;
    pieces.reverse();
    Ok(pieces.concat())
}

/// The pieces that are still to come, the last first.
fn rest(wire: &Wire, has_ended: bool) -> Rest<'_> {
    Box::pin(async move {
        if has_ended {
            return Ok(vec![]);
        }
        let Some(piece) = wire.try_read().await else {
            wire.io.readable().await?;
            return rest(wire, false).await;
        };
        let mut pieces = rest(
            wire,
            piece.ends_with('.')
                && !piece.trim_end_matches('.').ends_with(|c: char| c.is_ascii_digit()),
        )
        .await?;
        pieces.push(piece);
        Ok(pieces)
    })
}
