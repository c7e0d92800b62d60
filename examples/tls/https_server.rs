//! An HTTP server behind TLS. It makes a certificate at each start, and writes it to a file:
//! `https_server 127.0.0.1:8443 own.pem`, and then `curl --cacert own.pem https://localhost:8443/`.

use std::error::Error;
use std::io::{self, ErrorKind};
use std::rc::Rc;
use std::sync::Arc;
use std::time::Duration;
use std::{env, fs};

use futures_rustls::TlsAcceptor;
use futures_rustls::rustls::ServerConfig;
use kernel::{Kernel, Options, Real};
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::interop::{Compat, FromFutures};
use net::{Connection, Stream, TcpListener, TcpStream, serve};
use traps::shutdown::begun;
use traps::{Signal, spawn, timeout_after};

struct Hello;

impl Handler for Hello {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        Ok(Response::text(format!("This is {}, by TLS.\n", request.path())))
    }
}

async fn client(tcp: Connection<TcpStream>, tls: TlsAcceptor, http: Rc<Config>) -> io::Result<()> {
    let peer = Stream::peer_addr(&tcp);
    let accepted = timeout_after(Duration::from_secs(10), tls.accept(Compat::new(tcp))).await?;
    let stream = FromFutures::new(accepted).with_peer_addr(peer);
    match serve_connection(stream, &Hello, &http).await {
        // Some clients leave without the `close_notify` of TLS.
        Err(error) if error.kind() == ErrorKind::UnexpectedEof => Ok(()),
        served => served,
    }
}

async fn server() -> Result<(), Box<dyn Error>> {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()])?;
    fs::write(env::args().nth(2).expect("a file for the certificate"), own.cert.pem())?;
    let key = own.signing_key.serialize_der().try_into()?;
    let tls = ServerConfig::builder().with_no_client_auth();
    let tls = TlsAcceptor::from(Arc::new(tls.with_single_cert(vec![own.cert.der().clone()], key)?));
    let mut listener = TcpListener::bind(env::args().nth(1).expect("an address"))?;
    println!("listening on {}", listener.local_addr()?);
    let http = Rc::new(Config::default());
    let drained = http.clone();
    spawn("drain", async move { begun().await.map(|()| drained.drain()) }).detached().await;
    let accept = async || listener.accept_until_shutdown().await;
    Ok(serve(accept, 1000, |tcp| client(tcp, tls.clone(), http.clone())).await?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let options = Options::new().shutdown_on(&[Signal::Interrupt, Signal::Terminate]);
    let mut kernel = Kernel::with_options(Real::new()?, options);
    kernel.run(server())??;
    Ok(kernel.shutdown()?)
}
