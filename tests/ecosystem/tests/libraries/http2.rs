//! HTTP/2: by hyper at both ends, and by the crate `h2` against hyper.

use std::convert::Infallible;

use ::hyper::body::Incoming;
use ::hyper::client::conn::http2::handshake;
use ::hyper::server::conn::http2::Builder;
use ::hyper::service::service_fn;
use ::hyper::{Request, Response, Version};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use net::TcpStream;
use net::interop::{Compat, KernelExecutor, KernelTimer};
use traps::{join, join3, spawn};

use super::{loopback, run};

/// More than the window of a stream, so that the ends have to wait for each other.
const LARGE: usize = 1 << 20;

async fn echo(request: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    assert_eq!(request.version(), Version::HTTP_2);
    let body = request.into_body().collect().await.expect("a whole body").to_bytes();
    Ok(Response::new(Full::new(body)))
}

async fn serve(stream: TcpStream) -> hyper::Result<()> {
    let mut builder = Builder::new(KernelExecutor);
    builder.timer(KernelTimer).serve_connection(Compat::new(stream), service_fn(echo)).await
}

#[test]
fn hyper_speaks_http_2_at_both_ends_and_its_requests_share_a_connection() {
    let bodies = [vec![1; LARGE], vec![2; 3], vec![3; LARGE]];
    let sent = bodies.clone();
    let back = run(async move {
        let (client, accepted) = loopback().await;
        let mut server = spawn("server", serve(accepted)).await;
        let (sender, connection) = handshake(KernelExecutor, Compat::new(client)).await.unwrap();
        let mut connection = spawn("client", connection).await;
        let ask = |body: Vec<u8>| {
            let mut sender = sender.clone();
            async move {
                let request = Request::post("http://x/").body(Full::<Bytes>::from(body)).unwrap();
                let response = sender.send_request(request).await.unwrap();
                response.into_body().collect().await.unwrap().to_bytes().to_vec()
            }
        };
        let [first, second, third] = sent;
        let back = join3(ask(first), ask(second), ask(third)).await;
        drop(sender);
        connection.join().await.unwrap().unwrap();
        // The client closes first, so the server may see a reset.
        let _ = server.join().await.unwrap();
        back
    });
    assert!(bodies == [back.0, back.1, back.2]);
}

#[test]
fn h2_asks_hyper_and_h2_serves_hyper() {
    let (asked, served) = run(async {
        let (client, accepted) = loopback().await;
        let (asked, _) = join(ask_by_h2(client), serve(accepted)).await;
        let (client, accepted) = loopback().await;
        let ask = async {
            let (mut sender, connection) =
                handshake(KernelExecutor, Compat::new(client)).await.unwrap();
            spawn("client", connection).detached().await;
            let request = Request::get("http://x/").body(Full::<Bytes>::default()).unwrap();
            let response = sender.send_request(request).await.unwrap();
            response.into_body().collect().await.unwrap().to_bytes()
        };
        let (served, _) = join(ask, serve_by_h2(accepted)).await;
        (asked.unwrap(), served)
    });
    assert_eq!((&*asked, &*served), (&b"tea"[..], &b"by h2"[..]));
}

async fn ask_by_h2(stream: TcpStream) -> Result<Vec<u8>, h2::Error> {
    let (sender, connection) = h2::client::handshake(Compat::new(stream)).await?;
    spawn("connection", connection).detached().await;
    let request = Request::post("http://x/").body(()).unwrap();
    let (response, mut body) = sender.ready().await?.send_request(request, false)?;
    body.send_data(Bytes::from("tea"), true)?;
    let mut found = Vec::new();
    let mut body = response.await?.into_body();
    while let Some(piece) = body.data().await.transpose()? {
        body.flow_control().release_capacity(piece.len())?;
        found.extend_from_slice(&piece);
    }
    Ok(found)
}

async fn serve_by_h2(stream: TcpStream) -> Result<(), h2::Error> {
    let mut connection = h2::server::handshake(Compat::new(stream)).await?;
    while let Some((_, mut respond)) = connection.accept().await.transpose()? {
        let mut body = respond.send_response(Response::new(()), false)?;
        body.send_data(Bytes::from("by h2"), true)?;
    }
    Ok(())
}
