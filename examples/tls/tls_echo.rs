//! The echo server over TLS, by rustls. It makes a new self-signed certificate at each start; try
//! `openssl s_client -connect 127.0.0.1:8080`.

use std::error::Error;
use std::io;
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use futures_rustls::TlsAcceptor;
use futures_rustls::rustls::ServerConfig;
use futures_util::{AsyncReadExt, AsyncWriteExt};
use net::TcpStream;
use net::interop::Compat;
use rcgen::{CertifiedKey, KeyPair, generate_simple_self_signed};
use serving::server::{self, Place, Server};
use traps::shutdown::{hold, until_begun};
use traps::{spawn, timeout_after};

/// How long a client may take for its part of the handshake.
const HANDSHAKE: Duration = Duration::from_secs(10);

/// A self-signed certificate for `localhost`, and its key.
pub fn certificate() -> Result<CertifiedKey<KeyPair>, rcgen::Error> {
    generate_simple_self_signed(["localhost".to_owned()])
}

pub fn acceptor(own: &CertifiedKey<KeyPair>) -> Result<TlsAcceptor, Box<dyn Error>> {
    let key = own.signing_key.serialize_der().try_into()?;
    let config = ServerConfig::builder().with_no_client_auth();
    let config = config.with_single_cert(vec![own.cert.der().clone()], key)?;
    Ok(Arc::new(config).into())
}

pub async fn echo(acceptor: TlsAcceptor, stream: TcpStream) -> io::Result<()> {
    // A shutdown waits until everything that was read is sent back.
    let _hold = hold();
    let accepted = timeout_after(HANDSHAKE, acceptor.accept(Compat::new(stream)));
    let Some(mut stream) = until_begun(accepted).await.transpose()? else { return Ok(()) };
    let mut buf = vec![0; 16 * 1024];
    while let Some(n) = until_begun(stream.read(&mut buf)).await.transpose()? {
        if n == 0 {
            break;
        }
        stream.write_all(&buf[..n]).await?;
        // TLS holds records back.
        stream.flush().await?;
    }
    // Marks the end, so that it is not taken for a cut.
    stream.close().await
}

async fn main_task(place: Place) -> Result<(), Box<dyn Error>> {
    let acceptor = acceptor(&certificate()?)?;
    let mut listener = place.listen()?;
    while let Some(stream) = listener.accept_until_shutdown().await? {
        spawn("conn", echo(acceptor.clone(), stream)).detached().await;
    }
    Ok(())
}

fn main() -> ExitCode {
    let args: Server = common::parse("tls_echo", "The echo server behind TLS");
    server::serve(&args.ready(0, &[]), main_task)
}
