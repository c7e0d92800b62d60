// says: line #0105: d2 was set in #0074, at 9.780000, and fires while `serve` answers `one tea`; the limit of 16.300003 s ends with the last byte of the request, so disarm the deadline before the answer
// demand: The honest client is served.
//! The answer has a limit as well.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::connection_deadline;

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    let deadline = connection_deadline().await;
    loop {
        let Some(request) = deadline.guard(limit, read_line(&mut stream)).await? else {
            return Ok(());
        };
        deadline.guard(limit * 4, answer(&mut stream, &request)).await?;
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
