//! An HTTP server over TLS. It makes a certificate at each start, and writes it to a file:
//! `https_server own.pem`, and then `curl --cacert own.pem https://localhost:8080/`.

use std::error::Error;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;
use std::sync::Arc;
use std::{fs, io};

use futures_rustls::TlsAcceptor;
use futures_rustls::rustls::ServerConfig;
use net::http::{Config, Handler, Request, Response, serve_wrapped};
use net::interop::{Compat, FromFutures};
use net::{Stream, TcpListener, TcpStream};
use serving::server::{self, Place, Server};

#[derive(clap::Args)]
struct Args {
    /// Where to write the certificate, which a client must trust
    #[arg(value_name = "CERTIFICATE", default_value = "own.pem")]
    certificate: PathBuf,
    #[command(flatten)]
    server: Server,
}

struct Hello;

impl Handler for Hello {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        Ok(Response::text(format!("This is {}, by TLS.\n", request.path())))
    }
}

async fn server(listener: TcpListener, tls: TlsAcceptor) -> io::Result<()> {
    let handshake = async move |tcp: TcpStream| {
        let peer = tcp.peer();
        let accepted = tls.accept(Compat::new(tcp)).await?;
        io::Result::Ok(FromFutures::new(accepted).with_peer(peer))
    };
    serve_wrapped(listener, handshake, Rc::new(Hello), Rc::new(Config::default())).await
}

/// Makes a self-signed certificate for `localhost`, and writes it to a file.
fn acceptor(file: &PathBuf) -> Result<TlsAcceptor, Box<dyn Error>> {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    let wrong = |error| format!("cannot write the certificate to {}: {error}", file.display());
    fs::write(file, own.cert.pem()).map_err(wrong)?;
    let key = own.signing_key.serialize_der().try_into()?;
    let tls = ServerConfig::builder().with_no_client_auth();
    Ok(TlsAcceptor::from(Arc::new(tls.with_single_cert(vec![own.cert.der().clone()], key)?)))
}

fn main() -> ExitCode {
    let args: Args = common::parse("https_server", "An HTTP server behind TLS");
    let ready = args.server.ready(0, &[]);
    let tls = match acceptor(&args.certificate) {
        Ok(tls) => tls,
        Err(error) => return common::report(Some(error.to_string())),
    };
    let main = move |place: Place| {
        let tls = tls.clone();
        async move { server(place.listen()?, tls).await }
    };
    server::serve(&ready, main)
}
