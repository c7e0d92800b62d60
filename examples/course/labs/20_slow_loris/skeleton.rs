//! A reader of requests. No client can hold it forever.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::{ConnectionDeadline, connection_deadline};

use super::given::answer;

/// Answers one request after the other until the client closes.
pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    let deadline = connection_deadline().await;
    while let Some(request) = next_request(&deadline, &mut stream, limit).await? {
        answer(&mut stream, &request).await?;
    }
    Ok(())
}

/// Reads the next request of this connection within `limit`.
async fn next_request(
    deadline: &ConnectionDeadline,
    stream: &mut PipeEnd,
    limit: Duration,
) -> io::Result<Option<String>> {
    // The solution uses these three.
    let _ = (deadline, limit);
    let _line = read_line(stream);
    todo!("the deadline within which `read_line` must end")
}

/// Reads the bytes up to the end of a line. Returns `None` if the client has closed.
async fn read_line(stream: &mut PipeEnd) -> io::Result<Option<String>> {
    let (mut line, mut buf) = (String::new(), [0; 16]);
    loop {
        let n = stream.read(&mut buf).await?;
        if n == 0 {
            return Ok(None);
        }
        line.push_str(&String::from_utf8_lossy(&buf[..n]));
        if line.ends_with('\n') {
            return Ok(Some(line.trim_end().to_owned()));
        }
    }
}
