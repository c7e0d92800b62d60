// says: line #0128: `conn-2` makes a second deadline here; a connection has one deadline, and each request arms it again
// demand: The deadline of the connection.
//! A deadline for each request.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::connection_deadline;

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    loop {
        let deadline = connection_deadline().await;
        let read = deadline.guard(limit, read_line(&mut stream)).await?;
        let Some(request) = read else { return Ok(()) };
        answer(&mut stream, &request).await?;
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
