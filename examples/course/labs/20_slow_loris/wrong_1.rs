// says: line #0020: this timeout is for one read, and #0047 is the next for another: each read ended in time, and the loris held its connection until 33.500000; the deadline must span all the reads of a request
// demand: The loris is cut off.
//! A timeout around each read: a client that sends a byte now and then never meets it.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::timeout_after;

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    while let Some(request) = read_line(&mut stream, limit).await? {
        answer(&mut stream, &request).await?;
    }
    Ok(())
}

/// Reads the bytes up to the end of a line. Returns `None` if the client has closed.
async fn read_line(stream: &mut PipeEnd, limit: Duration) -> io::Result<Option<String>> {
    let (mut line, mut buf) = (String::new(), [0; 16]);
    loop {
        let n = timeout_after(limit, stream.read(&mut buf)).await?;
        if n == 0 {
            return Ok(None);
        }
        line.push_str(&String::from_utf8_lossy(&buf[..n]));
        if line.ends_with('\n') {
            return Ok(Some(line.trim_end().to_owned()));
        }
    }
}
