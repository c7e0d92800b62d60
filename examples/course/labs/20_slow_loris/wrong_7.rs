// says: line #0135: a timeout ends `loris` in time; but each request opens a scope and sets a timer for it, see #0020; arm the deadline of the connection, which costs a store
// demand: The deadline of the connection.
//! A timeout around the whole request: it is in time, and it is a scope and a timer each time.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::timeout_after;

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    while let Some(request) = timeout_after(limit, read_line(&mut stream)).await? {
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
