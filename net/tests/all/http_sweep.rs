//! A connection that is interrupted anywhere: nothing hangs, nothing is left, and the output is the
//! beginning of correct responses.

use std::io;
use std::rc::Rc;

use http_support::App;
use kernel::Sim;
use net::Stream;
use net::http::{Config, Deadlines, Limits, serve_connection};
use net::pipe::{PipeEnd, duplex};
use testing::Injection;
use traps::spawn;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: here\r\n\r\n";
const STREAM: &[u8] = b"GET /stream HTTP/1.1\r\nHost: here\r\n\r\n";
const COUNT: &[u8] = b"POST /count HTTP/1.1\r\nHost: here\r\nContent-Length: 100\r\n\r\n";
const EXPECT: &[u8] =
    b"POST /small HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\nExpect: 100-continue\r\n\r\n";
const CHUNKED: &[u8] = b"POST /count HTTP/1.1\r\nHost: here\r\nTransfer-Encoding: chunked\r\n\r\n";
const CHUNKS: &[u8] = b"5\r\nthree\r\n1;a=b\r\n \r\n6\r\npieces\r\n0\r\nEnd: yes\r\n\r\n";

/// The responses that the client saw, and why it stopped.
type Seen = (Vec<u8>, io::Result<()>);

/// Reads until `seen` holds `answers` complete responses.
async fn listen(client: &mut PipeEnd, seen: &mut Vec<u8>, answers: usize) -> io::Result<()> {
    let mut buf = [0; 64];
    while whole_answers(seen).expect("they are right so far") < answers {
        match client.read(&mut buf).await? {
            0 => return Err(io::ErrorKind::UnexpectedEof.into()),
            n => seen.extend_from_slice(&buf[..n]),
        }
    }
    Ok(())
}

/// Keeps the connection for each kind of request, two of them at once.
async fn converse(client: &mut PipeEnd, seen: &mut Vec<u8>) -> io::Result<()> {
    client.write_all(GET).await?;
    listen(client, seen, 1).await?;
    client.write_all(COUNT).await?;
    client.write_all(&[b'x'; 100]).await?;
    listen(client, seen, 2).await?;
    client.write_all(EXPECT).await?;
    listen(client, seen, 3).await?;
    client.write_all(b"small").await?;
    listen(client, seen, 4).await?;
    client.write_all(CHUNKED).await?;
    client.write_all(CHUNKS).await?;
    // Without waiting for a response.
    client.write_all(STREAM).await?;
    listen(client, seen, 6).await
}

/// Makes the server wait for everything that it can wait for, such as its clock, or a body that
/// does not arrive within the handler's timeout.
async fn keep_waiting(client: &mut PipeEnd, seen: &mut Vec<u8>) -> io::Result<()> {
    client.write_all(b"GET /sleep HTTP/1.1\r\nHost: here\r\n\r\n").await?;
    listen(client, seen, 1).await?;
    let post = b"POST /patient HTTP/1.1\r\nHost: here\r\nContent-Length: 5\r\n\r\n";
    client.write_all(post).await?;
    listen(client, seen, 2).await
}

/// Makes the server wait for room, and end a response with the connection.
async fn read_much(client: &mut PipeEnd, seen: &mut Vec<u8>) -> io::Result<()> {
    client.write_all(b"GET /stream?length=11 HTTP/1.1\r\nHost: here\r\n\r\n").await?;
    client.write_all(b"GET /bye HTTP/1.1\r\nHost: here\r\n\r\n").await?;
    listen(client, seen, 2).await?;
    to_the_end(client, seen).await
}

/// Makes the server write more than fits into a pipe.
async fn read_what_is_long(client: &mut PipeEnd, seen: &mut Vec<u8>) -> io::Result<()> {
    client.write_all(b"GET /big HTTP/1.1\r\nHost: here\r\n\r\n").await?;
    listen(client, seen, 1).await
}

/// Is refused.
async fn nonsense(client: &mut PipeEnd, seen: &mut Vec<u8>) -> io::Result<()> {
    client.write_all(b"GET / HTTP/1.1\r\nHost : here\r\n\r\nand more").await?;
    to_the_end(client, seen).await
}

/// Begins a head and sends no more.
async fn fall_silent(client: &mut PipeEnd, seen: &mut Vec<u8>) -> io::Result<()> {
    client.write_all(b"GET / HT").await?;
    to_the_end(client, seen).await
}

async fn to_the_end(client: &mut PipeEnd, seen: &mut Vec<u8>) -> io::Result<()> {
    match listen(client, seen, usize::MAX).await {
        Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => Ok(()),
        other => other,
    }
}

/// A client, and a server that moves at most `most` bytes at a time, over a pipe of `capacity`.
async fn connection<C>(capacity: usize, most: usize, converse: &C) -> Seen
where
    C: AsyncFn(&mut PipeEnd, &mut Vec<u8>) -> io::Result<()>,
{
    let (mut server, mut client) = duplex(capacity);
    server.set_short_reads(most);
    // Every client that pipelines yields, so that this is interrupted too.
    let limits = Limits { pipelined: 1, ..Limits::default() };
    let config = Rc::new(Config::new(limits, Deadlines::default()));
    let serve = async move { serve_connection(server, &App, &config).await };
    let mut conn = spawn("conn", serve).await;
    let mut seen = Vec::new();
    let end = converse(&mut client, &mut seen).await;
    drop(client);
    // The peer has gone, so the connection ends, in any way.
    let _ = conn.join().await;
    (seen, end)
}

/// The beginning of the response to a request that is cut off.
const REFUSED: &str = "HTTP/1.1 503 ";

/// A pipe that everything fits into, and one that nothing fits into.
const WIDE_AND_NARROW: [(usize, usize); 2] = [(1 << 16, usize::MAX), (64, 17)];

/// Sweeps a conversation with `answers` responses over each pipe.
fn interrupt_anywhere<C>(answers: usize, pipes: &[(usize, usize)], converse: C)
where
    C: AsyncFn(&mut PipeEnd, &mut Vec<u8>) -> io::Result<()>,
{
    for &(capacity, most) in pipes {
        let (all, end) = testing::run(connection(capacity, most, &converse)).output;
        let text = String::from_utf8_lossy(&all);
        assert!(end.is_ok(), "{end:?}\n{text}");
        assert_eq!(whole_answers(&all), Ok(answers), "{text}");
        let sweep = testing::sweep(|| (Sim::new(), connection(capacity, most, &converse)));
        let swept = sweep.check(|injection: &Injection, ran| {
            let (seen, _) = ran.output;
            let text = String::from_utf8_lossy(&seen);
            assert!(whole_answers(&seen).is_ok(), "{text}");
            // The server sends the same bytes as without the interrupt, as far as it gets. A
            // request that is cut off is refused if none of its response has been sent.
            let said = text.split(REFUSED).next().expect("there is a first part").as_bytes();
            assert!(injection.trap.name != "conn" || all.starts_with(said), "{text}");
        });
        assert_eq!(swept.plain.output.0, all);
    }
}

/// The number of complete responses in these bytes; the last response may be incomplete.
///
/// # Errors
///
/// If the bytes cannot be the beginning of any response.
fn whole_answers(bytes: &[u8]) -> Result<usize, String> {
    let (mut rest, mut whole) = (bytes, 0);
    while !rest.is_empty() {
        let line = b"HTTP/1.1 ";
        let known = rest.len().min(line.len());
        if rest[..known] != line[..known] {
            return Err(format!("no answer begins with {:?}", String::from_utf8_lossy(rest)));
        }
        let Some(end) = rest.windows(4).position(|window| window == b"\r\n\r\n") else { break };
        let head = String::from_utf8_lossy(&rest[..end]).to_ascii_lowercase();
        let field = |name: &str| head.split("\r\n").find_map(|line| line.strip_prefix(name));
        let body = &rest[end + 4..];
        let length = match (field("content-length: "), field("transfer-encoding: chunked")) {
            (Some(length), None) => Some(length.parse().map_err(|_| format!("length {length}"))?),
            (None, Some(_)) => whole_chunks(body)?,
            (None, None) if head.starts_with("http/1.1 100 ") => Some(0),
            _ => return Err(format!("an answer without an end: {head}")),
        };
        match length.and_then(|length: usize| body.get(length..)) {
            Some(after) => rest = after,
            None => break,
        }
        whole += 1;
    }
    Ok(whole)
}

/// The length of a chunked body, if it is complete.
fn whole_chunks(bytes: &[u8]) -> Result<Option<usize>, String> {
    let mut at = 0;
    loop {
        let rest = &bytes[at..];
        let Some(end) = rest.windows(2).position(|window| window == b"\r\n") else {
            return Ok(None);
        };
        let line = String::from_utf8_lossy(&rest[..end]).into_owned();
        let size = usize::from_str_radix(&line, 16).map_err(|_| format!("chunk {line:?}"))?;
        let Some(tail) = rest.get(end + 2 + size..).filter(|tail| tail.len() >= 2) else {
            return Ok(None);
        };
        if !tail.starts_with(b"\r\n") {
            return Err(format!("a chunk of {size} has more"));
        }
        at += end + 2 + size + 2;
        if size == 0 {
            return Ok(Some(at));
        }
    }
}

#[test]
fn a_connection_can_be_interrupted_anywhere() {
    interrupt_anywhere(6, &WIDE_AND_NARROW, converse);
}

#[test]
fn a_server_that_waits_can_be_interrupted_anywhere() {
    interrupt_anywhere(2, &WIDE_AND_NARROW, keep_waiting);
}

#[test]
fn a_server_that_closes_can_be_interrupted_anywhere() {
    interrupt_anywhere(2, &WIDE_AND_NARROW, read_much);
}

#[test]
fn a_long_answer_can_be_interrupted_anywhere() {
    interrupt_anywhere(1, &[(1 << 13, usize::MAX)], read_what_is_long);
}

#[test]
fn a_refusal_can_be_interrupted_anywhere() {
    interrupt_anywhere(1, &WIDE_AND_NARROW, nonsense);
    interrupt_anywhere(1, &WIDE_AND_NARROW, fall_silent);
}
