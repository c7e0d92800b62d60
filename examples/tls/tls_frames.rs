//! Messages with a length prefix over TLS: a server that turns each message around, and its client,
//! in one program.

use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;

use common::Common;
use futures_rustls::rustls::{ClientConfig, RootCertStore, ServerConfig};
use futures_rustls::{TlsAcceptor, TlsConnector};
use kernel::Real;
use net::interop::{Compat, FromFutures};
use net::{Frames, Stream, TcpListener, TcpStream};
use traps::join;

#[derive(clap::Args)]
struct Args {
    #[command(flatten)]
    common: Common,
}

/// The length of the longest message.
const MOST: usize = 1 << 16;

async fn server(tcp: TcpStream, tls: TlsAcceptor) -> io::Result<()> {
    let mut frames = Frames::new(FromFutures::new(tls.accept(Compat::new(tcp)).await?), MOST);
    while let Some(frame) = frames.read().await? {
        let turned: Vec<u8> = frame.iter().rev().copied().collect();
        frames.write(&turned).await?;
    }
    frames.stream().shutdown()?;
    frames.stream().flush().await
}

async fn client(tcp: TcpStream, tls: TlsConnector) -> Result<(), Box<dyn Error>> {
    let tls = tls.connect("localhost".try_into()?, Compat::new(tcp)).await?;
    let mut frames = Frames::new(FromFutures::new(tls), MOST);
    for text in ["stressed", "drawer", "live"] {
        frames.write(text.as_bytes()).await?;
        let turned = frames.read().await?.ok_or("the server left")?;
        println!("{text} {}", String::from_utf8_lossy(turned));
    }
    frames.stream().shutdown()?;
    Ok(frames.stream().flush().await?)
}

async fn program() -> Result<(), Box<dyn Error>> {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let certificate = own.cert.der().clone();
    let key = own.signing_key.serialize_der().try_into()?;
    let mut roots = RootCertStore::empty();
    roots.add(certificate.clone())?;
    let ours = ServerConfig::builder().with_no_client_auth();
    let ours = Arc::new(ours.with_single_cert(vec![certificate], key)?);
    let theirs = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();

    let mut listener = TcpListener::bind(("127.0.0.1", 0))?;
    let tcp = TcpStream::connect(listener.local_addr()?).await?;
    let served = server(listener.accept_stream().await?, ours.into());
    let (served, asked) = join(served, client(tcp, Arc::new(theirs).into())).await;
    served?;
    asked
}

fn main() -> ExitCode {
    let args: Args = common::parse("tls_frames", "Messages with a length prefix over TLS");
    args.common.print_lists(&args.common.options(), &[]);
    let kernel = Real::new().and_then(|real| args.common.kernel(real, args.common.options()));
    common::run(kernel, program())
}
