// says: line #0048: `conn-1` waits here for a request, and has done so since 0.000000; its deadline is 20.500000, and with a limit of 10 s it must be 10.000000
// demand: The limit is exact.
//! The limit is twice as long for a client that has sent something.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::connection_deadline;

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    let deadline = connection_deadline().await;
    let (mut line, mut buf) = (String::new(), [0; 16]);
    loop {
        match line.len() {
            0 => deadline.arm(limit),
            1 => deadline.arm(limit * 2),
            _ => {}
        }
        let n = stream.read(&mut buf).await?;
        if n == 0 {
            return Ok(());
        }
        line.push_str(&String::from_utf8_lossy(&buf[..n]));
        if line.ends_with('\n') {
            deadline.disarm();
            answer(&mut stream, line.trim_end()).await?;
            line.clear();
        }
    }
}
