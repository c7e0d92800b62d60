//! The same bytes for this server and for hyper's: which requests does each of them read?
//!
//! hyper parses heads with `httparse`, and our server with its own parser. Each also interprets a
//! head, and reads a body, with its own code.

use std::cell::RefCell;
use std::convert::Infallible;
use std::future::Future;
use std::io;
use std::pin::{Pin, pin};
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use http_body_util::{BodyExt, Empty};
use http_support::corpus::corpus;
use http_support::mistakes::requests;
use hyper::body::Incoming;
use hyper::rt::{Read, ReadBufCursor, Write};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use kernel::{Kernel, Sim};
use net::Stream;
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::pipe::duplex;
use proptest::prelude::*;

/// A request that was read to its end: method, path with query, body.
type Served = (String, String, Vec<u8>);

// ---- This handler ------------------------------------------------------------------------------

#[derive(Clone, Default)]
struct Recorder(Rc<RefCell<Vec<Served>>>);

impl Handler for Recorder {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let body = request.body_to_vec(1 << 20).await?;
        let method =
            if request.is_head() { "Head".into() } else { format!("{:?}", request.method()) };
        let query = request.query().map(|query| format!("?{query}")).unwrap_or_default();
        let target = format!("{}{query}", request.path());
        self.0.borrow_mut().push((method.to_uppercase(), target, body));
        Ok(Response::new(200))
    }
}

fn ours(bytes: &[u8]) -> Vec<Served> {
    let recorder = Recorder::default();
    let mut kernel = Kernel::new(Sim::new());
    let handler = recorder.clone();
    let done = kernel.run(async {
        let (server, mut client) = duplex(1 << 20);
        client.write(bytes).await.expect("there is room");
        client.shutdown().expect("a pipe can be shut down");
        serve_connection(server, &handler, &Config::default()).await
    });
    done.expect("nothing hangs").expect("nothing fails");
    kernel.shutdown().expect("it shuts down");
    recorder.0.take()
}

// ---- hyper -------------------------------------------------------------------------------------

/// A stream of given bytes, then the end; written bytes are thrown away.
struct Bench<'a>(&'a [u8]);

impl Read for Bench<'_> {
    fn poll_read(
        mut self: Pin<&mut Self>,
        _: &mut Context<'_>,
        mut buf: ReadBufCursor<'_>,
    ) -> Poll<io::Result<()>> {
        let (now, later) = self.0.split_at(self.0.len().min(buf.remaining()));
        buf.put_slice(now);
        self.0 = later;
        Poll::Ready(Ok(()))
    }
}

impl Write for Bench<'_> {
    fn poll_write(
        self: Pin<&mut Self>,
        _: &mut Context<'_>,
        buf: &[u8],
    ) -> Poll<io::Result<usize>> {
        Poll::Ready(Ok(buf.len()))
    }
    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}

fn hypers(bytes: &[u8]) -> Vec<Served> {
    let served = Rc::new(RefCell::new(Vec::new()));
    let service = service_fn(|request: hyper::Request<Incoming>| {
        let served = served.clone();
        async move {
            let method = request.method().to_string();
            let target = request.uri().path_and_query().map_or("/", |target| target.as_str());
            let target = target.to_owned();
            if let Ok(body) = request.into_body().collect().await {
                served.borrow_mut().push((method, target, body.to_bytes().to_vec()));
            }
            Ok::<_, Infallible>(hyper::Response::new(Empty::<Bytes>::new()))
        }
    });
    let mut builder = http1::Builder::new();
    builder.half_close(true);
    let mut connection = pin!(builder.serve_connection(Bench(bytes), service));
    let mut cx = Context::from_waker(Waker::noop());
    let done = (0..100).any(|_| connection.as_mut().poll(&mut cx).is_ready());
    assert!(done, "hyper comes to an end");
    served.take()
}

// ---- Where they differ -------------------------------------------------------------------------

/// Requests of the corpus that are read differently here: the difference, and the reason. Except
/// for the first two, hyper accepts more.
const DIFFERENCES: &[(&str, &str)] = &[
    ("HTTP/1.2", "9110, 2.5: a later minor version is served as 1.1; hyper refuses it"),
    ("OPTIONS http://b HTTP", "9112, 3.2.4: without path and query it means the asterisk"),
    ("GET http://u@b/", "9110, 4.2.4: a user in the target SHOULD be an error"),
    ("GET * ", "9112, 3.2.4: the asterisk is for OPTIONS"),
    ("GET b:80 ", "9112, 3.2.3: an authority alone is for CONNECT"),
    ("CONNECT ", "9110, 9.1: not known here, so 501; hyper leaves methods to its service"),
    ("BREW ", "the same"),
    ("get ", "the same"),
    ("YYYY / ", "the same"),
    ("/#f", "9112, 3.2: a fragment is no part of a target, SHOULD be 400; hyper cuts it off"),
    ("\r\n\r\n\r\n\r\n\r\nGET", "9112, 2.2: at least one empty line; here at most eight"),
    ("\nGET / HTTP/1.1\r\nHost: a", "9112, 2.2: LF alone MAY end a line; here only if allowed"),
    ("HTTP/1.1\nX", "the same"),
    ("Host: a\nX", "the same"),
    ("X: y\n\r\n", "the same in trailers"),
    ("0\r\n\n", "the same at the end of a body"),
    ("GET /path HTTP/1.1\r\n\r\n", "9112, 3.2: without Host MUST be 400; left to the service"),
    ("HEAD / HTTP/1.1\r\n\r\n", "the same"),
    ("Host: a\r\nHost: a", "9112, 3.2: two of them MUST be 400; left to the service"),
    ("Host: a b", "9112, 3.2: an invalid one MUST be 400; left to the service"),
    ("Host: a:x", "the same"),
    ("Host: [::1\r\n", "the same"),
    ("Host: a:65536", "9110, 4.2.3: a port is at most 65535; left to the service"),
    ("GET http://b:65536/", "the same"),
    ("Host: :80", "9110, 4.2.1: http has no empty host; left to the service"),
    ("GET http://:80/", "the same"),
    ("Expect: tea", "9110, 10.1.1: MAY be 417"),
    ("Content-Length: 5\r\nContent-Length: 5", "9112, 6.3: equal ones MAY be refused"),
    ("Content-Length: 5\r\nTransfer-Encoding", "9112, 6.1: both MAY be refused; hyper closes"),
    ("Transfer-Encoding: chunked\r\nContent-Length", "the same"),
    ("gzip, chunked", "9112, 6.1: not understood, SHOULD be 501; left to the service"),
    ("chunked, chunked", "9112, 6.1: MUST NOT be sent, and may be read in two ways"),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked", "the same"),
    ("5;\r\n", "9112, 7.1.1: an extension has a name"),
    ("5 \r\n", "9112, 7.1.1: white space only before an extension"),
    ("00000000000000005", "9112, 7.1: 16 digits at most, so that zeros come to an end"),
    ("TRACE /trace HTTP/1.1\r\nHost: a\r\nContent-Length", "9110, 9.3.8: MUST NOT be sent"),
];

#[test]
fn where_the_rfc_leaves_no_choice_hyper_agrees() {
    let mut used = vec![false; DIFFERENCES.len()];
    let (mut same, mut read) = (0, 0);
    for request in corpus() {
        let (us, them) = (ours(&request), hypers(&request));
        if us == them {
            (same, read) = (same + 1, read + us.len());
            continue;
        }
        let text = String::from_utf8_lossy(&request);
        let known = DIFFERENCES.iter().position(|(part, _)| text.contains(part));
        let known = known.unwrap_or_else(|| panic!("{text:?}\nhere {us:?}\nhyper {them:?}"));
        used[known] = true;
        assert!(known < 2 || them.starts_with(&us), "{text:?}\nhere {us:?}\nhyper {them:?}");
    }
    for ((part, why), used) in DIFFERENCES.iter().zip(used) {
        assert!(used, "{part:?} is no difference any more: {why}");
    }
    assert!(same > 100 && read > 50, "{same} agree, and {read} requests were read");
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 3_000,
        failure_persistence: None,
        ..ProptestConfig::default()
    })]

    /// hyper reads each request that is accepted here as the same request. So a proxy that follows
    /// the RFC as hyper does sees the same requests as the handler.
    #[test]
    fn what_is_read_here_is_read_by_hyper(bytes in requests(corpus())) {
        let text = String::from_utf8_lossy(&bytes).into_owned();
        let minor = ('2'..='9').any(|minor| text.contains(&format!("HTTP/1.{minor}")));
        // Visible bytes that no URI can have: hyper refuses them in a path; here the handler
        // decides about a target.
        let no_uri = text.contains(['`', '<', '>']);
        if !minor && !no_uri && !text.contains("OPTIONS http") {
            let (us, them) = (ours(&bytes), hypers(&bytes));
            prop_assert!(them.starts_with(&us), "{text:?}\nhere {us:?}\nhyper {them:?}");
        }
    }
}
