//! One connection with any handler, and what its client sees, on a simulated machine.

use std::rc::Rc;
use std::time::Duration;

use kernel::{Kernel, Sim};
use net::Stream;
use net::http::{Config, Handler, serve_connection};
use net::pipe::duplex;
use traps::{Time, clock, ignore_after, spawn};

/// The responses that the client saw.
#[derive(Debug)]
pub struct Seen {
    pub text: String,
    /// Whether the server closed.
    pub closed: bool,
    /// When the last byte came.
    pub at: Time,
    pub trace: String,
}

impl Seen {
    /// The status codes of the answers, in order.
    pub fn statuses(&self) -> Vec<u16> {
        let lines = self.text.split("HTTP/1.1 ").skip(1);
        lines.filter_map(|line| line.get(..3)?.parse().ok()).collect()
    }

    /// The value of the first field of that name.
    pub fn field(&self, name: &str) -> Option<&str> {
        let head = self.text.split("\r\n\r\n").next()?;
        let mut fields = head.lines().filter_map(|line| line.split_once(": "));
        fields.find(|(found, _)| found.eq_ignore_ascii_case(name)).map(|(_, value)| value)
    }

    /// The bytes after the first head.
    pub fn body(&self) -> &str {
        self.text.split_once("\r\n\r\n").map_or("", |(_, body)| body)
    }
}

/// A request line made whole.
pub fn get(line: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: a\r\n\r\n")
}

/// A request line made whole, with more fields.
pub fn with(line: &str, fields: &str) -> String {
    format!("{line} HTTP/1.1\r\nHost: a\r\n{fields}\r\n\r\n")
}

/// Sends `request` to a new connection and listens until the server closes, or nothing comes for a
/// minute.
pub fn talk(sim: Sim, config: Config, handler: impl Handler + 'static, request: &str) -> Seen {
    let trace = Shared::default();
    let mut kernel = Kernel::new(sim);
    kernel.trace_to(trace.clone());
    kernel.observe(testing::Truth::default());
    let (server, mut client) = duplex(1 << 20);
    let mut seen = kernel
        .run(async {
            let serve = async move { serve_connection(server, &handler, &config).await };
            let mut conn = spawn("conn", serve).await;
            client.write_all(request.as_bytes()).await.unwrap();
            let mut seen =
                Seen { text: String::new(), closed: false, at: Time::ZERO, trace: String::new() };
            let mut buf = vec![0; 65_536];
            while !seen.closed {
                match ignore_after(Duration::from_secs(4), client.read(&mut buf)).await {
                    Ok(Some(0)) | Err(_) => seen.closed = true,
                    Ok(Some(n)) => {
                        seen.text.push_str(&String::from_utf8_lossy(&buf[..n]));
                        seen.at = clock().await;
                    }
                    Ok(None) => break,
                }
            }
            drop(client);
            conn.join().await.expect("the task of the connection does not panic").ok();
            seen
        })
        .expect("nothing hangs");
    kernel.shutdown().expect("it shuts down");
    drop(kernel);
    seen.trace = trace.text();
    seen
}

/// A trace that is kept.
#[derive(Clone, Default)]
pub struct Shared(Rc<std::cell::RefCell<Vec<u8>>>);

impl Shared {
    pub fn text(&self) -> String {
        String::from_utf8(self.0.borrow().clone()).unwrap()
    }
}

impl std::io::Write for Shared {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
