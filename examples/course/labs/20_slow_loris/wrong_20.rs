// says: line #0191: `conn-2` waits here for a request, and has done so since 18.000000; its deadline is not armed, and with a limit of 10 s it must be 28.000000
// demand: The limit is exact.
//! A client with two good requests is trusted: the next have no limit.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::connection_deadline;

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    let deadline = connection_deadline().await;
    let mut good = 0;
    loop {
        let request = if good < 2 {
            deadline.guard(limit, read_line(&mut stream)).await?
        } else {
            read_line(&mut stream).await?
        };
        let Some(request) = request else { return Ok(()) };
        answer(&mut stream, &request).await?;
        good += 1;
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
