//! hyper's HTTP client on trapline: fetches a path and prints the body.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;

use bytes::Bytes;
use common::Common;
use http_body_util::{BodyExt, Empty};
use hyper::Request;
use hyper::client::conn::http1::handshake;
use kernel::Real;
use net::TcpStream;
use net::interop::Compat;
use traps::spawn;

/// The options of the command line.
#[derive(clap::Args)]
struct Job {
    /// Where the server listens
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    address: String,
    /// What to ask for
    #[arg(value_name = "PATH", default_value = "/")]
    path: String,
    #[command(flatten)]
    common: Common,
}

/// Fetches a path from a server, and writes the body to `out` as it arrives.
pub async fn fetch(address: &str, path: &str, out: &mut impl Write) -> Result<(), Box<dyn Error>> {
    let stream = TcpStream::connect(address).await?;
    let (mut sender, connection) = handshake(Compat::new(stream)).await?;
    // Transfers the bytes of both directions; ends when the sender is dropped.
    spawn("connection", connection).detached().await;
    let request = Request::get(path).header("Host", address);
    let mut answer = sender.send_request(request.body(Empty::<Bytes>::new())?).await?;
    common::complain(answer.status());
    while let Some(frame) = answer.frame().await {
        if let Ok(piece) = frame?.into_data() {
            // Nothing else runs here, so this can block.
            out.write_all(&piece)?;
        }
    }
    Ok(())
}

fn main() -> ExitCode {
    let job: Job = common::parse("hyper_client", "hyper's own HTTP client on trapline");
    job.common.print_lists(&job.common.options(), &[]);
    let kernel = Real::new().and_then(|real| job.common.kernel(real, job.common.options()));
    common::run(kernel, async { fetch(&job.address, &job.path, &mut io::stdout()).await })
}
