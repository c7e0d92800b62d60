// says: line #0089: d2 fires 5 s after it was set in #0026, and the honest client is cut off in its request for one tea, for which it needs 6 s; its line is bad, and a request may take 10 s
// demand: The honest client is served.
//! So short that it ends an honest client, too.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::connection_deadline;

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    let deadline = connection_deadline().await;
    while let Some(request) = deadline.guard(limit / 2, read_line(&mut stream)).await? {
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
