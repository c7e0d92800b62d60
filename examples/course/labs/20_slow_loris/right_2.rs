//! A helper function with the limit, and a quiet end after a timeout.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::{ConnectionDeadline, connection_deadline};

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    let deadline = connection_deadline().await;
    loop {
        deadline.phase("request");
        let request = match limited(&deadline, &mut stream, limit).await {
            Err(_) if deadline.fired() => break,
            read => read?,
        };
        let Some(request) = request else { break };
        answer(&mut stream, &request).await?;
    }
    Ok(())
}

async fn limited(
    deadline: &ConnectionDeadline,
    stream: &mut PipeEnd,
    limit: Duration,
) -> io::Result<Option<String>> {
    deadline.guard(limit, async { read_line(stream).await }).await
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
