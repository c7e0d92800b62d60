//! One HTTP/1.1 connection. All its phases share one deadline.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use super::kernel::{ConnectionDeadline, Error, Kind, TcpStream};
use super::message::{Response, parse, refuse, text};

/// The limit from the first byte of a request to the end of its head. Slow bytes gain no time.
const HEAD: Duration = Duration::from_secs(10);
/// The limit for the first byte of a request.
const LINGER: Duration = Duration::from_secs(5);
/// The limit for a client to take its response.
const WRITE: Duration = Duration::from_secs(10);
const MAX_HEAD: usize = 8192;

/// The state that a connection and the shutdown share.
#[derive(Default)]
pub struct State {
    /// Whether the connection waits for the first byte of a request.
    pub is_idle: Cell<bool>,
    /// The response to this request is the last.
    pub is_closing: Cell<bool>,
}

pub async fn serve(stream: TcpStream, state: Rc<State>) -> Result<(), Error> {
    let deadline = ConnectionDeadline::new().await;
    let mut input = Vec::new();
    loop {
        if input.is_empty() {
            state.is_idle.set(true);
            deadline.arm(LINGER);
            let count = deadline.guard(fill(&stream, &mut input)).await?;
            state.is_idle.set(false);
            if count == 0 {
                return Ok(());
            }
        }
        deadline.arm(HEAD);
        let mut response = match deadline.guard(request(&stream, &mut input)).await {
            Ok(response) => response,
            // Pass on the cancellation of a shutdown. A passed deadline is the client's fault.
            Err(Error::Interrupt(why)) if why.kind() == Kind::TaskTimeout => {
                refuse("408 Request Timeout")
            }
            Err(error) => return Err(error),
        };
        response.closes |= state.is_closing.get();
        deadline.arm(WRITE);
        deadline.guard(stream.write_all(text(&response).as_bytes())).await?;
        deadline.disarm();
        if response.closes {
            return Ok(());
        }
    }
}

async fn fill(stream: &TcpStream, input: &mut Vec<u8>) -> Result<usize, Error> {
    let mut buffer = [0; 1024];
    let count = stream.read(&mut buffer).await?;
    input.extend_from_slice(&buffer[..count]);
    Ok(count)
}

/// Reads to the end of a head, takes it out of the input, and decides on the response.
async fn request(stream: &TcpStream, input: &mut Vec<u8>) -> Result<Response, Error> {
    loop {
        if let Some((response, length)) = parse(input) {
            input.drain(..length);
            return Ok(response);
        }
        if input.len() > MAX_HEAD {
            return Ok(refuse("431 Request Header Fields Too Large"));
        }
        if fill(stream, input).await? == 0 {
            return Ok(refuse("400 Bad Request"));
        }
    }
}
