//! Clients that try to use all the memory of a server, and an honest client, the *bystander*: every
//! post of the bystander is answered within a second, and the memory stays within its limit. On a
//! virtual clock.

use std::io;
use std::rc::Rc;
use std::time::Duration;

use allocation_counter::measure;
use kernel::{Kernel, Sim};
use net::Stream;
use net::http::{Config, Handler, Request, Response, serve_connection};
use net::pipe::{PipeEnd, duplex};
use traps::{clock, ignore_after, sleep, spawn};

const SECOND: Duration = Duration::from_secs(1);

/// How long an attack on the server with all of its memory lasts.
const SECONDS: u32 = 40;

/// The capacity of the buffers of a socket in each direction.
const SOCKET: usize = 64 << 10;

/// The bytes that a client sends again and again.
static PIECE: [u8; SOCKET] = [b'x'; SOCKET];

/// Sends the body back once all of it has arrived.
struct Echo;

impl Handler for Echo {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        Ok(Response::new(200).with_body(request.body_to_vec(usize::MAX).await?))
    }
}

async fn connect(config: &Rc<Config>) -> PipeEnd {
    let (server, client) = duplex(SOCKET);
    let config = config.clone();
    let serve = async move { serve_connection(server, &Echo, &config).await };
    spawn("conn", serve).detached().await;
    client
}

const CHUNKED: &str = "Transfer-Encoding: chunked";

fn head(framing: &str) -> Vec<u8> {
    format!("POST / HTTP/1.1\r\nHost: a\r\n{framing}\r\n\r\n").into_bytes()
}

fn of_length(length: usize) -> Vec<u8> {
    head(&format!("Content-Length: {length}"))
}

/// Sends this many bytes of a body.
async fn send(client: &mut PipeEnd, length: usize) -> io::Result<()> {
    let mut left = length;
    while left > 0 {
        let len = left.min(PIECE.len());
        client.write_all(&PIECE[..len]).await?;
        left -= len;
    }
    Ok(())
}

/// The status of the response to a body of that length, once the whole response has arrived.
async fn post(client: &mut PipeEnd, length: usize) -> io::Result<u16> {
    client.write_all(&of_length(length)).await?;
    send(client, length).await?;
    let (mut answer, mut buf) = (Vec::new(), vec![0; SOCKET]);
    while answer.len() < length {
        match client.read(&mut buf).await? {
            0 => break,
            n => answer.extend_from_slice(&buf[..n]),
        }
    }
    Ok(std::str::from_utf8(&answer[9..12]).unwrap().parse().unwrap())
}

/// Posts 20 kB, and an eighth of the longest body, each second.
async fn bystander(config: &Rc<Config>, seconds: u32) {
    for second in 1..=seconds {
        let until = clock().await + SECOND;
        for length in [20_000, config.limits.body as usize / 8] {
            let mut client = connect(config).await;
            let status = ignore_after(SECOND, post(&mut client, length)).await;
            assert_eq!(status.unwrap(), Some(200), "{length} bytes in second {second}");
            assert!(config.memory() <= config.limits.memory, "{} bytes", config.memory());
        }
        let left = until.since(clock().await);
        sleep(left).await.unwrap();
    }
}

/// Asserts that the bystander gets its responses during the attack of this many clients, and that
/// the process never has more memory than the server may use and each connection needs in addition.
fn beside<A, F>(attackers: usize, attack: A)
where
    A: Fn(Rc<Config>, usize) -> F,
    F: Future<Output = io::Result<()>> + 'static,
{
    beside_for(SECONDS, Config::default(), attackers, attack);
}

/// Like `beside`, for this long, with a server of this configuration.
fn beside_for<A, F>(seconds: u32, config: Config, attackers: usize, attack: A)
where
    A: Fn(Rc<Config>, usize) -> F,
    F: Future<Output = io::Result<()>> + 'static,
{
    let config = Rc::new(config);
    let run = || {
        Kernel::new(Sim::new())
            .run(async {
                for number in 0..attackers {
                    // Ignore the result, because the server cuts attackers off.
                    spawn("attacker", attack(config.clone(), number)).detached().await;
                }
                bystander(&config, seconds).await;
            })
            .unwrap();
    };
    let most = measure(run).bytes_max;
    // The pipe, its buffers, the buffers to read into and the tasks; and the bystander's answer.
    let beside = (attackers + 2) * 4 * SOCKET + (4 << 20);
    assert!(most < config.limits.memory + beside as u64, "{most} bytes");
}

/// Posts 8 MiB, reads the answer at 300 bytes a second, and reconnects when it is cut off.
async fn reads_slowly(config: Rc<Config>) -> io::Result<()> {
    let mut buf = [0; 300];
    loop {
        let mut client = connect(&config).await;
        client.write_all(&of_length(8 << 20)).await?;
        let _ = send(&mut client, 8 << 20).await;
        while matches!(client.read(&mut buf).await, Ok(1..)) {
            sleep(SECOND).await?;
        }
    }
}

#[test]
fn answers_that_are_hardly_read_take_no_memory_from_others() {
    beside(34, |config, _| reads_slowly(config));
}

#[test]
fn answers_that_are_hardly_read_take_none_however_many_there_are() {
    beside(100, |config, _| reads_slowly(config));
}

/// Sends nearly all of 8 MiB, and the rest a byte at a time, ten times a second.
#[test]
fn bodies_that_drip_at_their_end_take_no_memory_from_others() {
    beside(40, async |config, number| {
        loop {
            let mut client = connect(&config).await;
            let size = (8 << 20) - 5_000;
            match number % 2 {
                0 => client.write_all(&of_length(8 << 20)).await?,
                _ => {
                    client.write_all(&head(CHUNKED)).await?;
                    client.write_all(b"800000\r\n").await?;
                }
            }
            let _ = send(&mut client, size).await;
            while client.write_all(b"x").await.is_ok() {
                sleep(SECOND / 10).await?;
            }
        }
    });
}

/// 80 kB in a minute, of a body of 8 MiB that is announced or may come.
#[test]
fn bodies_that_hardly_come_take_no_memory_from_others() {
    beside(400, async |config, number| {
        let mut client = connect(&config).await;
        let (head, piece) = match number % 2 {
            0 => (of_length(8 << 20), vec![b'x'; 1_350]),
            _ => (head(CHUNKED), [&b"546\r\n"[..], &[b'x'; 0x546], b"\r\n"].concat()),
        };
        client.write_all(&head).await?;
        loop {
            client.write_all(&piece).await?;
            sleep(SECOND).await?;
        }
    });
}

/// A server with an eighth of the memory, for bodies of an eighth of the length.
fn small() -> Config {
    http_support::limits(|limits| (limits.memory, limits.body) = (32 << 20, 1 << 20))
}

/// Sends a part of the longest body, and then does nothing, so the server waits for its client or
/// the body for room. Reconnects when it is refused.
async fn parks(config: Rc<Config>, part: usize, pause: Duration) -> io::Result<()> {
    let length = config.limits.body as usize;
    loop {
        let mut client = connect(&config).await;
        client.write_all(&of_length(length)).await?;
        let _ = send(&mut client, part.min(length)).await;
        let mut buf = [0; 1000];
        while matches!(client.read(&mut buf).await, Ok(1..)) {}
        sleep(pause).await?;
    }
}

/// The server keeps an eighth of each of these, and has no room for more.
#[test]
fn bodies_that_wait_for_room_take_none_from_others() {
    for part in [(1 << 17) + 1, (1 << 17) + 9_000, 1 << 20] {
        beside_for(12, small(), 247, move |config, n| {
            parks(config, part, SECOND / 10 * (n as u32 % 10))
        });
    }
}

#[test]
fn bodies_of_all_sizes_that_wait_for_room_take_none_from_others() {
    beside_for(12, small(), 300, |config, n| {
        parks(config, 110_000 + 9_000 * (n % 10), SECOND / 10)
    });
}

/// Each is just fast enough not to be slow.
#[test]
fn bodies_that_trickle_take_no_memory_from_others() {
    beside_for(12, small(), 200, async |config, _| {
        loop {
            let mut client = connect(&config).await;
            client.write_all(&of_length(1 << 20)).await?;
            for _ in 0..512 {
                if send(&mut client, 2_048).await.is_err() {
                    break;
                }
                sleep(SECOND / 100).await?;
            }
        }
    });
}
