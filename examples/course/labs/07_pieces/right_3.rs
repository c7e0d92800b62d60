//! Yours: a message that comes in pieces, by recursion from its end.

use std::pin::Pin;

use super::given::Wire;
use super::kernel::Error;

type Pieces<'w> = Pin<Box<dyn Future<Output = Result<Vec<&'static str>, Error>> + 'w>>;

/// Reads pieces until a piece ends with a full stop. Returns the message.
pub async fn message(wire: &Wire) -> Result<String, Error> {
    Ok(String::from_iter(rest(wire).await?.into_iter().rev()))
}

/// The pieces that are still to come, the last first.
fn rest(wire: &Wire) -> Pieces<'_> {
    Box::pin(async move {
        match wire.try_read().await {
            Some(last) if last.ends_with('.') => Ok(vec![last]),
            Some(piece) => {
                let mut pieces = rest(wire).await?;
                pieces.push(piece);
                Ok(pieces)
            }
            None => {
                wire.io.readable().await?;
                rest(wire).await
            }
        }
    })
}
