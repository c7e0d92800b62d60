// says: line #0364: the honest client is cut off in its request for one breakfast: two rolls, butter, honey, an egg, cheese, ham and a pot of coffee, and no deadline had fired: `serve` ended its connection; it is to answer until the client closes
// demand: The honest client is served.
//! A request has a largest size, which no client has to know.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::connection_deadline;

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    let deadline = connection_deadline().await;
    while let Some(request) = deadline.guard(limit, read_line(&mut stream)).await? {
        answer(&mut stream, &request).await?;
    }
    Ok(())
}

/// Reads the bytes up to the end of a line. Returns `None` if the client has closed.
async fn read_line(stream: &mut PipeEnd) -> io::Result<Option<String>> {
    let (mut line, mut buf) = ([0; 64], [0; 16]);
    let mut length = 0;
    loop {
        let n = stream.read(&mut buf).await?;
        if n == 0 || length + n > line.len() {
            return Ok(None);
        }
        line[length..length + n].copy_from_slice(&buf[..n]);
        length += n;
        if line[length - 1] == b'\n' {
            return Ok(Some(String::from_utf8_lossy(&line[..length - 1]).into_owned()));
        }
    }
}
