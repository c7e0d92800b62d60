// says: line #0045: `conn-2` answers `one`, which no client has requested; a request ends with the end of its line
// demand: The honest client is served.
//! The bytes of one read are taken for a request.

use std::io;
use std::time::Duration;

use net::Stream;
use net::pipe::PipeEnd;
use traps::connection_deadline;

use super::given::answer;

pub async fn serve(mut stream: PipeEnd, limit: Duration) -> io::Result<()> {
    let deadline = connection_deadline().await;
    let mut buf = [0; 16];
    loop {
        let n = deadline.guard(limit, stream.read(&mut buf)).await?;
        if n == 0 {
            return Ok(());
        }
        let request = String::from_utf8_lossy(&buf[..n]).into_owned();
        answer(&mut stream, request.trim_end()).await?;
    }
}
