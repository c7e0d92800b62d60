// says: line #0048: the deadline of `conn-1` is armed here for the second time in the same request, and 32 times in all: each time the loris had another 10 s, and the loris held its connection until 33.500000; arm it once for a request
// demand: The loris is cut off.
//! The right deadline, armed again with each byte, as an idle timeout is.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::{ConnectionDeadline, connection_deadline};

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    let deadline = connection_deadline().await;
    while let Some(request) = read_line(&deadline, &mut stream, limit).await? {
        deadline.disarm();
        answer(&mut stream, &request).await?;
    }
    Ok(())
}

/// Reads the bytes up to the end of a line. Returns `None` if the client has closed.
async fn read_line(
    deadline: &ConnectionDeadline,
    stream: &mut PipeEnd,
    limit: Duration,
) -> io::Result<Option<String>> {
    let (mut line, mut buf) = (String::new(), [0; 16]);
    loop {
        deadline.arm(limit);
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
