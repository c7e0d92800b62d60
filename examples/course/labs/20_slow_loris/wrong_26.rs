// says: line #0128: `conn-2` answers `one tea` for the second time; a request has one answer
// demand: The honest client is served.
//! The answer is sent again, for a line that is bad.

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
        answer(&mut stream, &request).await?;
    }
    Ok(())
}

async fn next_request(
    deadline: &ConnectionDeadline,
    stream: &mut PipeEnd,
    limit: Duration,
) -> io::Result<Option<String>> {
    deadline.guard(limit, read_line(stream)).await
}

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
