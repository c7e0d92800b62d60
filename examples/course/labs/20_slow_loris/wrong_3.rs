// says: line #0077: d2 fires 5 s after it was set in #0022, and the honest client is cut off in its request for tea, for which it needs 6 s; its line is bad, and a request may take 10 s
//! So short that it ends an honest client, too.

use std::io;

use net::Stream;
use net::pipe::PipeEnd;
use traps::connection_deadline;

use super::given::{SECOND, answer};

pub async fn serve(mut stream: PipeEnd) -> io::Result<()> {
    let deadline = connection_deadline().await;
    while let Some(request) = deadline.guard(5 * SECOND, read_line(&mut stream)).await? {
        answer(&mut stream, &request).await?;
    }
    Ok(())
}

/// The bytes up to the end of a line; `None` if the client has closed.
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
