//! A server at a path of the file system that sends back what it gets: one task per connection.

use std::fs;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;

use common::Common;
use net::{UnixListener, UnixStream};
use traps::shutdown::{hold, until_begun};
use traps::spawn;

#[derive(clap::Args)]
struct Args {
    /// Where to listen; the path must not exist
    #[arg(long, value_name = "PATH", default_value = "echo.socket")]
    path: PathBuf,
    #[command(flatten)]
    common: Common,
}

async fn echo(mut stream: UnixStream) -> io::Result<()> {
    // A shutdown waits until everything that was read is sent back.
    let _hold = hold();
    let mut buf = vec![0; 16 * 1024];
    while let Some(n) = until_begun(stream.read(&mut buf)).await.transpose()? {
        if n == 0 {
            break;
        }
        stream.write_all(&buf[..n]).await?;
    }
    Ok(())
}

async fn serve(mut listener: UnixListener) -> io::Result<()> {
    let mut accepted = 0;
    while let Some(stream) = listener.accept_until_shutdown().await? {
        accepted += 1;
        // No task joins it, so if a connection fails, the others continue.
        spawn(format!("conn-{accepted}"), echo(stream)).detached().await;
    }
    Ok(())
}

fn main() -> ExitCode {
    let Args { path, common } = common::parse("unix_echo", "A server at a path that echoes");
    let kernel = common.until_signal();
    common::run(kernel, async move {
        let listener = UnixListener::bind(&path)?;
        common.say_where(path.display());
        let served = serve(listener).await;
        // A new client finds no path, instead of a path without a listener.
        fs::remove_file(path).and(served)
    })
}
