// says: line #1112: the honest client is cut off in its request for one breakfast: two rolls, butter, honey, an egg, cheese, ham and a pot of coffee, and no deadline had fired: `serve` ended its connection; it is to answer until the client closes
// demand: The honest client is served.
//! A request of more than 256 bytes is refused.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::{ConnectionDeadline, connection_deadline};

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    let deadline = connection_deadline().await;
    while let Some(request) = next_request(&deadline, &mut stream, limit).await? {
        answer(&mut stream, &request).await?;
    }
    Ok(())
}

async fn next_request(
    deadline: &ConnectionDeadline,
    stream: &mut PipeEnd,
    limit: Duration,
) -> io::Result<Option<String>> {
    let line = deadline.guard(limit, read_line(stream)).await?;
    match line {
        Some(line) if line.len() > 256 => Err(io::Error::other("too long")),
        line => Ok(line),
    }
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
