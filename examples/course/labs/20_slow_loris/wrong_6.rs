// says: line #0020: the deadline of `conn-1` is made here and never armed, so it cannot fire: the loris held its connection until 33.500000
// demand: The loris is cut off.
//! The deadline is made, and never armed.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::connection_deadline;

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, _limit: Duration) -> io::Result<()> {
    let _deadline = connection_deadline().await;
    while let Some(request) = read_line(&mut stream).await? {
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
