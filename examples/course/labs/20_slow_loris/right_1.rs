//! Armed and disarmed by hand, on every way out.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::connection_deadline;

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    let deadline = connection_deadline().await;
    loop {
        deadline.arm(limit);
        let read = read_line(&mut stream).await;
        deadline.disarm();
        match read {
            Ok(Some(request)) => answer(&mut stream, &request).await?,
            Ok(None) => return Ok(()),
            // A timeout_after around each read would not see a slow client.
            Err(error) => return Err(error),
        }
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
