//! The actions of attackers, and an attack in the presence of an honest client, on the virtual
//! clock.

use std::rc::Rc;
use std::time::Duration;

use net::Stream;
use net::http::{Config, serve_connection};
use net::pipe::{PipeEnd, duplex};
use traps::{clock, sleep, spawn};

use crate::App;

const GET: &[u8] = b"GET / HTTP/1.1\r\nHost: a\r\n\r\n";
const SECOND: Duration = Duration::from_secs(1);

/// The actions of an attacker on its connection.
pub type Enemy = fn(usize) -> Vec<(Duration, Vec<u8>)>;

/// Sends the pieces, each after its delay, and reads nothing until the connection ends or breaks.
async fn attack(mut client: PipeEnd, pieces: Vec<(Duration, Vec<u8>)>) {
    for (span, piece) in pieces {
        if sleep(span).await.is_err() || client.write(&piece).await.is_err() {
            return;
        }
    }
    // It keeps its end until the server has left.
    while client.write(b"").await.is_ok() && sleep(SECOND).await.is_ok() {}
}

pub fn slow_head(_: usize) -> Vec<(Duration, Vec<u8>)> {
    GET.iter().map(|byte| (9 * SECOND, vec![*byte])).collect()
}

pub fn slow_body(_: usize) -> Vec<(Duration, Vec<u8>)> {
    let head = b"POST /count HTTP/1.1\r\nHost: a\r\nContent-Length: 1000\r\n\r\n".to_vec();
    let drip = (0..1000).map(|_| (SECOND, vec![b'x']));
    std::iter::once((Duration::ZERO, head)).chain(drip).collect()
}

pub fn slow_read(_: usize) -> Vec<(Duration, Vec<u8>)> {
    vec![(Duration::ZERO, b"GET /big HTTP/1.1\r\nHost: a\r\n\r\n".to_vec())]
}

pub fn idle(n: usize) -> Vec<(Duration, Vec<u8>)> {
    // Half of them never send a byte, the others have asked once.
    if n.is_multiple_of(2) { vec![] } else { vec![(Duration::ZERO, GET.to_vec())] }
}

pub fn comes_and_goes(n: usize) -> Vec<(Duration, Vec<u8>)> {
    vec![(Duration::from_millis(n as u64), GET[..n % GET.len()].to_vec())]
}

/// This many of them attack for a minute, while an honest client asks ten times a second and must
/// be answered at the same instant.
pub async fn round(config: &Rc<Config>, enemies: usize, enemy: Enemy) {
    let mut tasks = Vec::new();
    for n in 0..enemies {
        let (server, client) = duplex(1000);
        let theirs = config.clone();
        let serve = async move { serve_connection(server, &App, &theirs).await };
        tasks.push(spawn("conn", async move { drop(serve.await) }).await);
        tasks.push(spawn("enemy", attack(client, enemy(n))).await);
    }
    let (server, mut client) = duplex(1000);
    let theirs = config.clone();
    let serve = async move { serve_connection(server, &App, &theirs).await };
    let mut conn = spawn("conn", serve).await;
    let mut buf = [0; 1000];
    for _ in 0..600 {
        let asked = clock().await;
        client.write_all(GET).await.unwrap();
        let n = client.read(&mut buf).await.unwrap();
        assert!(buf[..n].starts_with(b"HTTP/1.1 200 OK\r\n"));
        assert_eq!(clock().await, asked);
        sleep(Duration::from_millis(100)).await.unwrap();
    }
    assert_eq!(config.connections(), 1, "all others were left");
    drop(client);
    conn.join().await.unwrap().unwrap();
    for mut task in tasks {
        task.join().await.unwrap();
    }
}
