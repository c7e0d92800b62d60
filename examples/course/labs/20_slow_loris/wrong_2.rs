// says: line #0037: the deadline of `conn-1` is armed here for the second time in the same request, and 32 times in all: each byte bought the loris another 10 s, and the loris held its connection until 31.500000; arm it once for a request
//! The right deadline, armed again with each byte, as an idle timeout is.

use std::io;

use net::Stream;
use net::pipe::PipeEnd;
use traps::{ConnectionDeadline, connection_deadline};

use super::given::{LIMIT, answer};

pub async fn serve(mut stream: PipeEnd) -> io::Result<()> {
    let deadline = connection_deadline().await;
    while let Some(request) = read_line(&deadline, &mut stream).await? {
        deadline.disarm();
        answer(&mut stream, &request).await?;
    }
    Ok(())
}

/// The bytes up to the end of a line; `None` if the client has closed.
async fn read_line(
    deadline: &ConnectionDeadline,
    stream: &mut PipeEnd,
) -> io::Result<Option<String>> {
    let (mut line, mut buf) = (String::new(), [0; 16]);
    loop {
        deadline.arm(LIMIT);
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
