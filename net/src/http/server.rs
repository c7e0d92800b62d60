//! A server: a listener whose connections each have a task, until the kernel's shutdown begins.
//!
//! What a connection does is `connection`'s matter. It may not touch a stream.

use std::io;
use std::rc::Rc;

use traps::shutdown::hold;
use traps::spawn;

use super::config::Config;
use super::connection::{Handler, serve_connection};
use crate::listener::TcpListener;

/// Accepts connections and serves each in a task of its own, until the
/// [shutdown](traps::shutdown) of the kernel begins. Then it accepts what waits in the backlog,
/// closes the listener, [drains](Config::drain) the connections, and returns; each of them holds
/// the shutdown up until it has ended. Blocks.
///
/// A connection that fails ends alone, with a line in the log.
///
/// # Errors
///
/// The listener's own; the interrupt that ended the wait. The connections go on.
pub async fn serve<H: Handler + 'static>(
    mut listener: TcpListener,
    handler: Rc<H>,
    config: Rc<Config>,
) -> io::Result<()> {
    while let Some((stream, _)) = listener.accept_until_shutdown().await? {
        let (handler, config) = (handler.clone(), config.clone());
        let hold = hold();
        // Nobody joins it: its failures end with it.
        spawn("conn", async move {
            let _hold = hold;
            serve_connection(stream, &*handler, &config).await
        })
        .await;
    }
    drop(listener);
    config.drain();
    Ok(())
}
