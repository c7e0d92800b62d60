//! The example `redis`: its replies byte for byte, its limits and its times on the virtual clock,
//! and its end as a user sees it.

#[allow(dead_code, unreachable_pub)]
#[path = "../../examples/servers/redis.rs"]
mod server;

use std::cell::RefCell;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::process::{Command, Stdio};
use std::rc::Rc;
use std::time::Duration;

use net::Stream;
use net::pipe::{PipeEnd, duplex};
use server::{Data, Part};
use testing::child;
use traps::{Time, clock, sleep, spawn};

const SECOND: Duration = Duration::from_secs(1);
const IDLE: Duration = Duration::from_secs(300);
const WRITE: Duration = Duration::from_secs(30);

/// A client of its own server task. A pipe holds `room` bytes in each direction.
async fn connect_with(data: &Rc<RefCell<Data>>, number: u64, room: usize) -> PipeEnd {
    let (server, client) = duplex(room);
    let data = data.clone();
    let serve = async move { server::client(server, number, &data, [IDLE, WRITE]).await };
    spawn(format!("client-{number}"), serve).detached().await;
    client
}

async fn connect(data: &Rc<RefCell<Data>>, number: u64) -> PipeEnd {
    connect_with(data, number, 1 << 20).await
}

/// Sends `asked`, and compares the reply with `wanted`, which has the same number of bytes.
#[track_caller]
fn replies<'c>(
    client: &'c mut PipeEnd,
    asked: &'c [u8],
    wanted: &'c str,
) -> impl Future<Output = ()> + 'c {
    let site = std::panic::Location::caller();
    async move {
        client.write_all(asked).await.unwrap();
        let mut found = vec![0; wanted.len()];
        let read = traps::timeout_after(SECOND, client.read_exact(&mut found)).await;
        let text = String::from_utf8_lossy(&found);
        assert!(read.is_ok() && text == wanted, "{site}: {text:?}, not {wanted:?}: {read:?}");
    }
}

/// The rest of the replies before the server closes the connection.
async fn rest(client: &mut PipeEnd) -> String {
    let mut rest = Vec::new();
    client.read_to_end(&mut rest, 1 << 20).await.unwrap();
    String::from_utf8(rest).unwrap()
}

/// A request with these words, as a Redis client sends it.
fn array(words: &[&str]) -> Vec<u8> {
    let mut text = format!("*{}\r\n", words.len());
    words.iter().for_each(|word| text += &format!("${}\r\n{word}\r\n", word.len()));
    text.into_bytes()
}

#[test]
fn each_command_has_the_reply_of_redis() {
    testing::run(async {
        let data = server::data().await;
        let mut client = connect(&data, 1).await;
        for (words, reply) in [
            (&["PING"][..], "+PONG\r\n"),
            (&["ping", "hi"], "$2\r\nhi\r\n"),
            (&["ECHO", "a b"], "$3\r\na b\r\n"),
            (&["GET", "k"], "$-1\r\n"),
            (&["SET", "k", "a\r\nb"], "+OK\r\n"),
            (&["GET", "k"], "$4\r\na\r\nb\r\n"),
            (&["SET", "k", ""], "+OK\r\n"),
            (&["GET", "k"], "$0\r\n\r\n"),
            (&["TTL", "k"], ":-1\r\n"),
            (&["EXPIRE", "k", "9"], ":1\r\n"),
            (&["TTL", "k"], ":9\r\n"),
            (&["SET", "k", "v", "EX", "0"], "-ERR invalid expire time in 'set' command\r\n"),
            (&["EXPIRE", "k", "-1"], ":1\r\n"),
            (&["GET", "k"], "$-1\r\n"),
            (&["SET", "k", "v"], "+OK\r\n"),
            (&["TTL", "k"], ":-1\r\n"),
            (&["DEL", "k", "k", "none"], ":1\r\n"),
            (&["TTL", "k"], ":-2\r\n"),
            (&["EXPIRE", "k", "9"], ":0\r\n"),
            (&["INCR", "n"], ":1\r\n"),
            (&["incr", "n"], ":2\r\n"),
            (&["GET", "n"], "$1\r\n2\r\n"),
            (&["SET", "n", "9223372036854775807"], "+OK\r\n"),
            (&["INCR", "n"], "-ERR value is not an integer or out of range\r\n"),
            (&["SET", "n", "x"], "+OK\r\n"),
            (&["INCR", "n"], "-ERR value is not an integer or out of range\r\n"),
            (&["PUBLISH", "c", "m"], ":0\r\n"),
            (&["GET"], "-ERR wrong number of arguments, or an unknown option\r\n"),
            (&["SET", "k", "v", "NX", "1"], "-ERR wrong number of arguments, or an"),
            (&["HELLO", "3"], " unknown option\r\n-ERR unknown command\r\n"),
            (&["CONFIG", "GET", "save"], "-ERR unknown command\r\n"),
            (&["QUIT"], "+OK\r\n"),
        ] {
            replies(&mut client, &array(words), reply).await;
        }
        assert_eq!(rest(&mut client).await, "");
    });
}

#[test]
fn requests_may_be_inline_in_one_write_and_in_pieces() {
    testing::run(async {
        let data = server::data().await;
        let mut client = connect(&data, 1).await;
        replies(&mut client, b"PING\r\n\r\n  set  k v \nget k\r\n", "+PONG\r\n+OK\r\n$1\r\nv\r\n")
            .await;
        replies(&mut client, b"*0\r\n*-1\r\nPING\r\n", "+PONG\r\n").await;
        let both = [array(&["SET", "k", "w"]), array(&["GET", "k"])].concat();
        replies(&mut client, &both, "+OK\r\n$1\r\nw\r\n").await;
        for byte in &both {
            client.write_all(&[*byte]).await.unwrap();
            sleep(Duration::from_millis(1)).await.unwrap();
        }
        replies(&mut client, b"", "+OK\r\n$1\r\nw\r\n").await;
        // More replies than the server gathers, for a client whose pipe holds few of them.
        let mut client = connect_with(&data, 2, 1000).await;
        replies(&mut client, &array(&["SET", "k", &"x".repeat(900)]), "+OK\r\n").await;
        let one = format!("$900\r\n{}\r\n", "x".repeat(900));
        let ask = b"GET k\r\n".repeat(100);
        replies(&mut client, &ask, &one.repeat(100)).await;
    });
}

#[test]
fn a_value_is_gone_when_its_time_has_come() {
    testing::run(async {
        let data = server::data().await;
        let mut client = connect(&data, 1).await;
        replies(
            &mut client,
            b"SET a 1 EX 10\r\nSET b 1 px 1500\r\nTTL b\r\n",
            "+OK\r\n+OK\r\n:2\r\n",
        )
        .await;
        sleep(Duration::from_millis(1499)).await.unwrap();
        replies(&mut client, b"GET b\r\n", "$1\r\n1\r\n").await;
        sleep(Duration::from_millis(1)).await.unwrap();
        replies(&mut client, b"GET b\r\nTTL b\r\nDEL b\r\n", "$-1\r\n:-2\r\n:0\r\n").await;
        // The value keeps its expiry time, and a new value has none.
        replies(&mut client, b"INCR a\r\nTTL a\r\n", ":2\r\n:9\r\n").await;
        sleep(9 * SECOND).await.unwrap();
        replies(&mut client, b"INCR a\r\nTTL a\r\n", ":1\r\n:-1\r\n").await;
    });
}

#[test]
fn a_value_that_no_client_asks_for_is_swept_and_its_memory_is_free() {
    testing::run(async {
        let data = server::data().await;
        let mut client = connect(&data, 1).await;
        let value = "x".repeat(500 * 1024);
        let set = |n: usize| array(&["SET", &format!("k{n}"), &value, "EX", "1"]);
        let mut full = 0;
        for n in 0..200 {
            client.write_all(&set(n)).await.unwrap();
            let mut reply = [0; 4];
            client.read_exact(&mut reply).await.unwrap();
            if reply == *b"-OOM" {
                full = n;
                break;
            }
            client.read_exact(&mut [0; 1]).await.unwrap();
        }
        assert!((100..=140).contains(&full), "{full}");
        replies(&mut client, b"", " command not allowed when used memory > 'maxmemory'\r\n").await;
        // The virtual clock did not move. The sweep runs within a second of the expiry.
        sleep(2 * SECOND).await.unwrap();
        replies(&mut client, &set(full), "+OK\r\n").await;
    });
}

#[test]
fn what_is_no_request_or_too_large_gets_an_error_and_an_end() {
    testing::run(async {
        let data = server::data().await;
        let long = [&b"*1\r\n$524289\r\n"[..], &[b'x'; 100]].concat();
        for (number, (asked, why)) in [
            (&b"*x\r\n"[..], "invalid multibulk length"),
            (b"*1025\r\n", "invalid multibulk length"),
            (b"*1\r\nPING\r\n", "expected '$'"),
            (b"*1\r\n$x\r\n", "invalid bulk length"),
            (b"*1\r\n$-1\r\n", "invalid bulk length"),
            (b"*00000000000000000000000000000000", "too long a number"),
            (b"*1\r\n$4\r\nPING..", "expected an end of line"),
            (&long, "invalid bulk length"),
            (&[b'x'; 512 * 1024], "too big request"),
        ]
        .into_iter()
        .enumerate()
        {
            let mut client = connect(&data, number as u64).await;
            client.write_all(&[b"PING\r\n", asked].concat()).await.unwrap();
            let wanted = format!("+PONG\r\n-ERR Protocol error: {why}\r\n");
            assert_eq!(rest(&mut client).await, wanted, "{:?}", String::from_utf8_lossy(asked));
        }
        let mut client = connect(&data, 100).await;
        let key = "k".repeat(1025);
        replies(&mut client, &array(&["SET", &key, "v"]), "-ERR the key is too long\r\n").await;
    });
}

const HEARD: &str = "*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n$2\r\nhi\r\n";

#[test]
fn a_message_goes_to_the_subscribers_of_its_channel() {
    testing::run(async {
        let data = server::data().await;
        let (mut one, mut two) = (connect(&data, 1).await, connect(&data, 2).await);
        let mut publisher = connect(&data, 3).await;
        let is_in = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
        replies(&mut one, &array(&["SUBSCRIBE", "c"]), is_in).await;
        let both = format!("{is_in}*3\r\n$9\r\nsubscribe\r\n$1\r\nd\r\n:2\r\n");
        replies(&mut two, &array(&["SUBSCRIBE", "c", "d"]), &both).await;
        replies(&mut publisher, b"PUBLISH c hi\r\nPUBLISH d ho\r\n", ":2\r\n:1\r\n").await;
        replies(&mut one, b"", HEARD).await;
        let second = "*3\r\n$7\r\nmessage\r\n$1\r\nd\r\n$2\r\nho\r\n";
        replies(&mut two, b"", &format!("{HEARD}{second}")).await;
        // A subscriber may be silent, and can still send requests.
        sleep(2 * IDLE).await.unwrap();
        replies(&mut one, b"PING\r\n", "+PONG\r\n").await;
    });
}

#[test]
fn a_subscriber_that_does_not_read_is_disconnected() {
    testing::run(async {
        let data = server::data().await;
        let mut slow = connect_with(&data, 1, 64).await;
        replies(&mut slow, b"SUBSCRIBE c\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n").await;
        let mut publisher = connect(&data, 2).await;
        let (mut reached, large) = (0, "x".repeat(10_000));
        for _ in 0..200 {
            publisher.write_all(&array(&["PUBLISH", "c", &large])).await.unwrap();
            let mut reply = [0; 4];
            publisher.read_exact(&mut reply).await.unwrap();
            reached += usize::from(reply[1] - b'0');
        }
        // Its inbox has room for 512 KiB. The message that its task is writing counts too.
        assert_eq!(reached, 512 * 1024 / (10_000 + 64 + 37));
        let said = rest(&mut slow).await;
        assert_eq!(said.matches(&large).count(), reached);
    });
}

#[test]
fn an_inbox_takes_the_longest_message_and_has_room_again_once_it_is_read() {
    testing::run(async {
        let data = server::data().await;
        let mut hears = connect_with(&data, 1, 1 << 20).await;
        replies(&mut hears, b"SUBSCRIBE c\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n").await;
        let mut publisher = connect(&data, 2).await;
        let longest = "x".repeat(512 * 1024 - 100);
        for _ in 0..10 {
            replies(&mut publisher, &array(&["PUBLISH", "c", &longest]), ":1\r\n").await;
            let message =
                format!("*3\r\n$7\r\nmessage\r\n$1\r\nc\r\n${}\r\n{longest}\r\n", longest.len());
            replies(&mut hears, b"", &message).await;
        }
    });
}

/// A thousand clients take all places: silent ones, subscribers, and one that does not read.
#[test]
fn for_one_more_client_the_one_leaves_that_has_been_silent_longest() {
    testing::run(async {
        let data = server::data().await;
        let is_in = "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n";
        let mut clients = Vec::new();
        for number in 0..1000 {
            let mut client = connect_with(&data, number, 100).await;
            match number {
                0 => {}
                1 => client.write_all(&array(&["ECHO", &"x".repeat(300)])).await.unwrap(),
                2..500 => replies(&mut client, b"SUBSCRIBE c\r\n", is_in).await,
                _ => replies(&mut client, b"PING\r\n", "+PONG\r\n").await,
            }
            clients.push(client);
        }
        // This one is not silent any more.
        replies(&mut clients[2], b"PING\r\n", "+PONG\r\n").await;
        for (newcomer, leaves) in [(1000, 0), (1001, 1), (1002, 3), (1003, 4)] {
            let mut client = connect_with(&data, newcomer, 100).await;
            replies(&mut client, b"PING\r\n", "+PONG\r\n").await;
            clients.push(client);
            sleep(SECOND).await.unwrap();
            let said = rest(&mut clients[leaves]).await;
            assert_eq!(said.len(), if leaves == 1 { 100 } else { 0 }, "{leaves}");
        }
        for stays in [2, 5, 500, 999, 1003] {
            replies(&mut clients[stays], b"PING\r\n", "+PONG\r\n").await;
        }
    });
}

/// Otherwise a client that sends a request byte by byte costs the square of its length.
#[test]
fn a_request_without_an_end_is_not_searched_again_for_each_byte() {
    testing::run(async {
        let data = server::data().await;
        let (mut part, mut out) = (Part::default(), Vec::new());
        let mut answer = |input: &[u8], out: &mut Vec<u8>| {
            let (used, _) = data.borrow_mut().answer(1, input, &mut part, out);
            (used, part)
        };
        let none = Part::default();
        let long = [b'x'; 100_000];
        for length in [1, 50, 100_000] {
            let part = Part { searched: length, needed: length + 1 };
            assert_eq!(answer(&long[..length], &mut out), (0, part));
        }
        let whole = [&long[..], b"\r\n"].concat();
        assert_eq!(answer(&whole, &mut out).0, whole.len());
        assert_eq!(out, b"-ERR unknown command\r\n");
        out.clear();
        // An incomplete word begins with its length. The reply to the previous request has arrived.
        let whole = array(&["ECHO", &"y".repeat(1000)]);
        let begun = [b"PING\r\n", &whole[..30]].concat();
        let part = Part { searched: 0, needed: whole.len() };
        assert_eq!(answer(&begun, &mut out), (6, part));
        assert_eq!(answer(&whole[..whole.len() - 1], &mut out), (0, part));
        assert_eq!(out, b"+PONG\r\n");
        let (used, part) = answer(&whole, &mut out);
        assert_eq!((used, part.searched), (whole.len(), 0));
        assert!(part.needed <= 1, "{part:?}, not {none:?}");
    });
}

/// The time at which the server closes the connection.
async fn end_of(client: &mut PipeEnd) -> Time {
    client.read_to_end(&mut Vec::new(), 1 << 20).await.unwrap();
    clock().await
}

#[test]
fn a_client_that_is_silent_or_does_not_read_is_sent_away() {
    testing::run(async {
        let data = server::data().await;
        let mut client = connect(&data, 1).await;
        sleep(IDLE - SECOND).await.unwrap();
        replies(&mut client, b"PING\r\n", "+PONG\r\n").await;
        let start = clock().await;
        assert_eq!(end_of(&mut client).await.since(start), IDLE);
        let mut client = connect_with(&data, 2, 64).await;
        client.write_all(&array(&["ECHO", &"x".repeat(100)])).await.unwrap();
        sleep(WRITE + SECOND).await.unwrap();
        // Its connection ended while the second half of the reply had no room.
        assert_eq!(rest(&mut client).await.len(), 64);
    });
}

#[test]
fn a_signal_ends_the_server_and_its_silent_clients() {
    let mut command = Command::new(support::examples::build("redis"));
    command.args(["--addr", "127.0.0.1:0"]).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut server = child::spawn(&mut command);
    let mut line = String::new();
    BufReader::new(server.stdout.take().unwrap()).read_line(&mut line).unwrap();
    let addr = line.trim_end().strip_prefix("listening on ").expect("it says where it listens");
    let [mut asks, mut hears] = [(); 2].map(|()| TcpStream::connect(addr).unwrap());
    let says = |stream: &mut TcpStream, asked: &[u8], wanted: &str| {
        stream.write_all(asked).unwrap();
        let mut found = vec![0; wanted.len()];
        stream.read_exact(&mut found).unwrap();
        assert_eq!(String::from_utf8_lossy(&found), wanted);
    };
    says(&mut hears, b"SUBSCRIBE c\r\n", "*3\r\n$9\r\nsubscribe\r\n$1\r\nc\r\n:1\r\n");
    says(&mut asks, b"PUBLISH c hi\r\n", ":1\r\n");
    says(&mut hears, b"", HEARD);
    server.send("TERM");
    for stream in [&mut asks, &mut hears] {
        assert_eq!(stream.read(&mut [0]).unwrap(), 0);
    }
    let mut log = String::new();
    server.stderr.take().unwrap().read_to_string(&mut log).unwrap();
    assert_eq!(server.wait().unwrap().code(), Some(0), "{log}");
}
