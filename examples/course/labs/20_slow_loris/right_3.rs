//! A line at a time from a buffer that lives as long as the connection.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::connection_deadline;

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    let deadline = connection_deadline().await;
    let (mut read, mut buf) = (Vec::new(), [0; 4]);
    deadline.arm(limit);
    loop {
        match stream.read(&mut buf).await? {
            0 => return Ok(()),
            n => read.extend_from_slice(&buf[..n]),
        }
        while let Some(end) = read.iter().position(|byte| *byte == b'\n') {
            let rest = read.split_off(end + 1);
            let line = std::mem::replace(&mut read, rest);
            deadline.disarm();
            answer(&mut stream, String::from_utf8_lossy(&line).trim_end()).await?;
            deadline.arm(limit);
        }
    }
}
