//! hyper on tokio: a whole HTTP server, to be compared with program (b).
//!
//! Its deadlines are hyper's own: one for the head, which with keep-alive is the idle one too.

use std::convert::Infallible;
use std::io;

use bytes::Bytes;
use http_body_util::Full;
use hyper::body::Incoming;
use hyper::header::{CONTENT_TYPE, DATE, HeaderValue};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::TcpListener;

use super::How;
use super::program::IDLE;

async fn answer(_: Request<Incoming>) -> Result<Response<Full<Bytes>>, Infallible> {
    let mut response = Response::new(Full::new(Bytes::from_static(b"Hello, World!")));
    let text = HeaderValue::from_static("text/plain; charset=utf-8");
    response.headers_mut().insert(CONTENT_TYPE, text);
    let date = HeaderValue::from_static("Sun, 06 Nov 1994 08:49:37 GMT");
    response.headers_mut().insert(DATE, date);
    Ok(response)
}

pub fn serve(listener: std::net::TcpListener, how: How) -> io::Result<()> {
    let mut http = http1::Builder::new();
    http.pipeline_flush(true);
    if how.deadlines {
        http.timer(TokioTimer::new()).header_read_timeout(IDLE);
    } else {
        http.header_read_timeout(None);
    }
    super::tokio::runtime(how)?.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(http.serve_connection(TokioIo::new(stream), service_fn(answer)));
        }
    })
}
