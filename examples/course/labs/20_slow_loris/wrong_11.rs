// says: line #0023: `conn-1` waits here for a request, and has done so since 0.000000; its deadline is 10.000000, and with a limit of 16.300003 s it must be 16.300003
// demand: The limit is exact.
//! The limit of the page in place of that which `serve` was given.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::connection_deadline;

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, _limit: Duration) -> io::Result<()> {
    let deadline = connection_deadline().await;
    let limit = Duration::from_secs(10);
    while let Some(request) = deadline.guard(limit, read_line(&mut stream)).await? {
        answer(&mut stream, &request).await?;
    }
    Ok(())
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
