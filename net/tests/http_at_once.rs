//! What a handler answers at once is answered as if it had been awaited.

mod common;
#[path = "common/corpus.rs"]
mod corpus;

use std::cell::Cell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use common::{Act, App, Seen, limits, talk_to};
use corpus::corpus;
use net::Stream;
use net::http::{Config, Handler, Method, Request, Response};

/// Does as [`App`] does, in part at once, and counts how often.
#[derive(Clone, Default)]
struct Quick(Rc<Cell<u32>>);

impl Handler for Quick {
    fn at_once<S: Stream>(&self, request: &mut Request<'_, S>) -> Option<Response> {
        let answer = match (request.method(), request.path()) {
            (Method::Get, "/") => Response::text("Hello, World!"),
            (Method::Get, "/none") => Response::new(204),
            (Method::Get, "/big") => Response::new(200).with_body(vec![b'x'; 100_000]),
            (Method::Get, "/bye") => Response::text("bye").and_close(),
            (Method::Get, "/panic") => panic!("at once"),
            _ => return None,
        };
        self.0.set(self.0.get() + 1);
        Some(answer)
    }

    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        App.handle(request).await
    }
}

/// What comes back for `request` thrice: the first has to wait for the date, the others need not.
fn thrice(
    handler: impl Handler + Clone + 'static,
    config: Config,
    most: usize,
    request: &[u8],
) -> Seen {
    let requests = request.repeat(3);
    talk_to(handler, config, 1 << 20, most, &[Act::Send(&requests), Act::Finish])
}

#[test]
fn an_answer_at_once_has_the_same_bytes() {
    let quick = Quick::default();
    let some = |path: &str| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes();
    let asked = ["/", "/none", "/big", "/bye", "/sleep", "/stream", "/x"].map(some);
    let configs = [
        Config::default,
        || limits(|limits| limits.requests = 2),
        || limits(|limits| limits.pipelined = 1),
        || limits(|limits| (limits.body, limits.drain) = (16, 8)),
    ];
    for request in asked.into_iter().chain(corpus()) {
        for config in configs {
            for most in [usize::MAX, 700] {
                let expected = thrice(App, config(), most, &request);
                let seen = thrice(quick.clone(), config(), most, &request);
                assert_eq!(seen, expected, "{:?}", String::from_utf8_lossy(&request));
            }
        }
    }
    assert!(quick.0.get() > 20, "some were answered at once: {}", quick.0.get());
}

#[test]
fn a_panic_at_once_is_a_500_and_the_end() {
    let [first, panics] =
        ["/", "/panic"].map(|path| format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
    let requests = format!("{first}{panics}{first}");
    let acts = [Act::Send(requests.as_bytes()), Act::Sleep(Duration::from_secs(3))];
    let seen = talk_to(Quick::default(), Config::default(), 1 << 20, usize::MAX, &acts);
    assert_eq!(seen.statuses(), [200, 500]);
    assert!(seen.text.contains("Connection: close"), "{}", seen.text);
    assert!(seen.closed_at.is_some());
}
