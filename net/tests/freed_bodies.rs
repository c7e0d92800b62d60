//! The memory of large bodies is returned to the system, even after many of them. In a separate
//! process, because the allocator decides by everything that the process has freed.

use std::io;
use std::time::Duration;

use kernel::{Kernel, Sim};
use net::Stream;
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::pipe::duplex;
use traps::{join, sleep};

/// Sends the body back, or refuses it after a while.
struct Echo;

impl Handler for Echo {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let most = if request.path() == "/small" { 3 << 20 } else { usize::MAX };
        Ok(Response::new(200).with_body(request.body_to_vec(most).await?))
    }
}

/// glibc takes a block from its heap if a larger separate block was freed before. A separate block
/// begins 16 bytes after the start of a page.
#[test]
#[cfg(target_env = "gnu")]
fn a_large_body_is_freed_so_that_the_next_one_has_memory_of_its_own() {
    static PIECE: [u8; 1 << 16] = [b'x'; 1 << 16];
    let mut kernel = Kernel::new(Sim::new());
    for request in ["/", "/small"] {
        kernel
            .run(async {
                let (server, mut client) = duplex(1 << 16);
                let config = Config::default();
                let serve = async {
                    let _ = serve_connection(server, &Echo, &config).await;
                };
                let talk = async {
                    let framing = "Host: a\r\nTransfer-Encoding: chunked\r\n\r\n";
                    let head = format!("POST {request} HTTP/1.1\r\n{framing}");
                    client.write_all(head.as_bytes()).await.unwrap();
                    for _ in 0..100 {
                        let chunk = async {
                            client.write_all(b"10000\r\n").await?;
                            client.write_all(&PIECE).await?;
                            client.write_all(b"\r\n").await
                        };
                        if chunk.await.is_err() {
                            break;
                        }
                    }
                    let _ = client.write_all(b"0\r\n\r\n").await;
                    let mut buf = [0; 1 << 12];
                    while let Ok(Some(1..)) =
                        traps::ignore_after(Duration::from_secs(1), client.read(&mut buf)).await
                    {
                    }
                    drop(client);
                    sleep(Duration::from_secs(3)).await.unwrap();
                };
                join(serve, talk).await;
            })
            .unwrap();
        let next = vec![1_u8; 1 << 20];
        assert_eq!(next.as_ptr() as usize % 4096, 16, "{request}");
        // The drop of this block must not raise the size for the next round.
        std::mem::forget(next);
    }
}
