//! A server for the Redis protocol (RESP2): strings with an expiry, counters, and channels to
//! publish in. `redis-cli -p 8080` and `redis-benchmark -p 8080 -t ping,set,get,incr` work with it.
//!
//! All data are in memory, and every command runs to its end in one poll of the client's task. So
//! no command sees half of another one, and nothing needs a lock. Keys, requests, answers and
//! clients are limited, because a client must not be able to use up the memory.

#[path = "common/servers.rs"]
mod common;

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use common::limits::{limit, span};
use common::resp::{self, REQUEST, WORDS, bulk, integer, number, put};
use common::server::{self, Place, Server};
use common::values::millis;
use net::{BufReader, Stream, serve};
use traps::channel::mpsc::{self, Receiver, Sender};
use traps::shutdown::until_begun;
use traps::{
    Either, Error, Time, connection_deadline, ignore_after, race, sleep, spawn, timeout_after,
};

/// Clients at a time; others wait to be accepted.
const CLIENTS: u32 = 1000;
/// The most bytes of a key, or of the name of a channel.
const KEY: usize = 1024;
/// The most bytes of all keys and values, with [`ROOM`] for each.
const MEMORY: usize = 64 * 1024 * 1024;
/// The bytes that a key needs in addition to its text and its value.
const ROOM: usize = 128;
/// Answers of this size are written before the next request is looked at.
const ANSWERS: usize = 64 * 1024;
/// The most channels of a subscriber.
const CHANNELS: usize = 100;
/// Messages that wait for a subscriber. A subscriber with more is disconnected.
const MESSAGES: usize = 100;
/// The time between two searches for expired keys.
const SWEEP: Duration = Duration::from_secs(1);

/// What the command line asks for.
#[derive(clap::Args)]
struct Redis {
    /// Milliseconds that a client may be silent, unless it subscribes
    #[arg(long, value_name = "MS", default_value = "300000", value_parser = millis)]
    idle: Duration,
    /// Milliseconds that a client may take to receive an answer
    #[arg(long, value_name = "MS", default_value = "30000", value_parser = millis)]
    write: Duration,
    #[command(flatten)]
    server: Server,
}

// ---- Data --------------------------------------------------------------------------------------

struct Value {
    bytes: Vec<u8>,
    until: Time,
}

/// Messages for a subscriber, as they are sent.
pub type Inbox = Receiver<Rc<[u8]>>;

struct Subscriber {
    channels: BTreeSet<Vec<u8>>,
    inbox: Sender<Rc<[u8]>>,
}

/// What a client's task does after an answer.
pub enum Next {
    /// The rest of the input is no whole request: read more.
    Read,
    /// The answers have reached their limit: write them, and continue with the input.
    Write,
    /// The client has quit, or has sent what is no request.
    Close,
    /// The client has become a subscriber, and gets what comes out here.
    Subscribed(Inbox),
}

/// All data of the server.
pub struct Data {
    values: HashMap<Vec<u8>, Value>,
    /// The bytes of the values, as [`MEMORY`] limits them.
    size: usize,
    /// By the number of the client, so that all hear a message in one order.
    subscribers: BTreeMap<u64, Subscriber>,
    /// The number of clients so far.
    clients: u64,
    clock: Box<dyn Fn() -> Time>,
}

/// The end of a command: what follows, or the text of an error, which begins with its kind.
type Reply = Result<Next, &'static str>;

const WRONG: &str = "ERR wrong number of arguments, or an option that is not known";
const NO_NUMBER: &str = "ERR value is not an integer or out of range";
const NO_MEMORY: &str = "OOM command not allowed when used memory > 'maxmemory'.";

impl Data {
    pub fn new(clock: impl Fn() -> Time + 'static) -> Data {
        let (values, subscribers) = (HashMap::new(), BTreeMap::new());
        Data { values, size: 0, subscribers, clients: 0, clock: Box::new(clock) }
    }

    /// Answers the whole requests at the start of `input`. Returns how many bytes they have.
    pub fn answer(&mut self, client: u64, input: &[u8], out: &mut Vec<u8>) -> (usize, Next) {
        let mut used = 0;
        while out.len() < ANSWERS {
            let rest = &input[used..];
            let words = match resp::request(rest) {
                Ok(Some((words, length))) if length <= REQUEST => {
                    used += length;
                    words
                }
                Ok(None) if rest.len() < REQUEST => return (used, Next::Read),
                wrong => {
                    let why = wrong.err().unwrap_or("too big request");
                    put(out, format_args!("-ERR Protocol error: {why}\r\n"));
                    return (used, Next::Close);
                }
            };
            match self.execute(client, &words, out) {
                Ok(Next::Read) => {}
                Ok(next) => return (used, next),
                Err(error) => put(out, format_args!("-{error}\r\n")),
            }
        }
        (used, Next::Write)
    }

    fn execute(&mut self, client: u64, words: &[&[u8]], out: &mut Vec<u8>) -> Reply {
        let Some((name, words)) = words.split_first() else { return Ok(Next::Read) };
        match (&name.to_ascii_uppercase()[..], words) {
            (b"GET", [key]) => bulk(out, self.get(key).map(|value| &value.bytes[..])),
            (b"SET", [key, value, options @ ..]) => {
                let until = match options {
                    [] => Time::NEVER,
                    [unit, span] => self.after(unit, span)?,
                    _ => return Err(WRONG),
                };
                self.store(key, value, until)?;
                out.extend_from_slice(b"+OK\r\n");
            }
            (b"DEL", [_, ..]) => {
                let there = words.iter().filter(|key| self.remove(key)).count();
                integer(out, there as i64);
            }
            (b"INCR", [key]) => integer(out, self.increment(key)?),
            (b"EXPIRE", [key, seconds]) => {
                let until = self.after(b"EX", seconds)?;
                integer(out, self.get(key).map(|value| value.until = until).is_some().into());
            }
            (b"TTL", [key]) => {
                let until = self.get(key).map(|value| value.until);
                integer(out, self.seconds_left(until));
            }
            (b"PUBLISH", [channel, message]) => integer(out, self.publish(channel, message)),
            (b"SUBSCRIBE", [_, ..]) => return self.subscribe(client, words, out),
            (b"PING", []) => out.extend_from_slice(b"+PONG\r\n"),
            (b"PING" | b"ECHO", [text]) => bulk(out, Some(text)),
            (b"QUIT", _) => {
                out.extend_from_slice(b"+OK\r\n");
                return Ok(Next::Close);
            }
            (b"GET" | b"SET" | b"DEL" | b"INCR" | b"EXPIRE" | b"TTL" | b"PUBLISH", _)
            | (b"SUBSCRIBE" | b"PING" | b"ECHO", _) => return Err(WRONG),
            _ => return Err("ERR unknown command"),
        }
        Ok(Next::Read)
    }

    /// Finds a value, unless its time has come.
    fn get(&mut self, key: &[u8]) -> Option<&mut Value> {
        let value = self.values.get_mut(key)?;
        let is_there = value.until == Time::NEVER || value.until > (self.clock)();
        is_there.then_some(value)
    }

    fn store(&mut self, key: &[u8], bytes: &[u8], until: Time) -> Result<(), &'static str> {
        if key.len() > KEY {
            return Err("ERR the key is too long");
        }
        let old = self.values.get_mut(key);
        let before = old.as_ref().map_or(0, |old| ROOM + key.len() + old.bytes.len());
        let size = self.size - before + ROOM + key.len() + bytes.len();
        if size > MEMORY {
            return Err(NO_MEMORY);
        }
        self.size = size;
        let value = Value { bytes: bytes.to_vec(), until };
        match old {
            Some(old) => *old = value,
            None => drop(self.values.insert(key.to_vec(), value)),
        }
        Ok(())
    }

    /// Removes a value. Returns whether it was there.
    fn remove(&mut self, key: &[u8]) -> bool {
        let Some(value) = self.values.remove(key) else { return false };
        self.size -= ROOM + key.len() + value.bytes.len();
        value.until > (self.clock)()
    }

    /// Removes the values whose time has come. Looks at all values, so it runs now and then.
    fn sweep(&mut self) {
        let now = (self.clock)();
        let expired = self.values.iter().filter(|(_, value)| value.until <= now);
        for key in expired.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.remove(&key);
        }
    }

    fn increment(&mut self, key: &[u8]) -> Result<i64, &'static str> {
        let (old, until) = match self.get(key) {
            Some(value) => (number(&value.bytes).ok_or(NO_NUMBER)?, value.until),
            None => (0, Time::NEVER),
        };
        let new = i64::checked_add(old, 1).ok_or(NO_NUMBER)?;
        self.store(key, new.to_string().as_bytes(), until)?;
        Ok(new)
    }

    /// Returns the time after a number of seconds (`EX`) or milliseconds (`PX`).
    fn after(&self, unit: &[u8], span: &[u8]) -> Result<Time, &'static str> {
        let unit = match &unit.to_ascii_uppercase()[..] {
            b"EX" => Duration::from_secs,
            b"PX" => Duration::from_millis,
            _ => return Err(WRONG),
        };
        let span: u64 = number(span).ok_or(NO_NUMBER)?;
        Ok((self.clock)() + unit(span))
    }

    /// Returns the seconds left, rounded up; -1 for a value that stays, and -2 for no value.
    fn seconds_left(&self, until: Option<Time>) -> i64 {
        match until {
            None => -2,
            Some(Time::NEVER) => -1,
            Some(until) => until.since((self.clock)()).as_millis().div_ceil(1000) as i64,
        }
    }

    /// Sends a message to the subscribers of a channel. Returns their number. Disconnects those
    /// who do not keep up.
    fn publish(&mut self, channel: &[u8], message: &[u8]) -> i64 {
        let mut text = b"*3\r\n".to_vec();
        [b"message", channel, message].iter().for_each(|word| bulk(&mut text, Some(word)));
        let (text, mut count) = (Rc::from(text), 0);
        self.subscribers.retain(|_, subscriber| {
            if !subscriber.channels.contains(channel) {
                return true;
            }
            let sent = subscriber.inbox.try_send(Rc::clone(&text)).is_ok();
            count += i64::from(sent);
            sent
        });
        count
    }

    fn subscribe(&mut self, client: u64, names: &[&[u8]], out: &mut Vec<u8>) -> Reply {
        let mut next = Next::Read;
        let subscriber = self.subscribers.entry(client).or_insert_with(|| {
            let (inbox, messages) = mpsc::channel(MESSAGES);
            next = Next::Subscribed(messages);
            Subscriber { channels: BTreeSet::new(), inbox }
        });
        for name in names {
            if subscriber.channels.len() == CHANNELS || name.len() > KEY {
                out.extend_from_slice(b"-ERR too many channels, or too long a name\r\n");
                break;
            }
            subscriber.channels.insert(name.to_vec());
            out.extend_from_slice(b"*3\r\n");
            bulk(out, Some(b"subscribe"));
            bulk(out, Some(name));
            integer(out, subscriber.channels.len() as i64);
        }
        Ok(next)
    }
}

// ---- Clients -----------------------------------------------------------------------------------

/// A connected client. It subscribes to nothing any more when it is dropped.
struct Client {
    data: Rc<RefCell<Data>>,
    number: u64,
}

impl Client {
    fn new(data: Rc<RefCell<Data>>) -> Client {
        data.borrow_mut().clients += 1;
        let number = data.borrow().clients;
        Client { data, number }
    }
}

impl Drop for Client {
    fn drop(&mut self) {
        self.data.borrow_mut().subscribers.remove(&self.number);
    }
}

/// The time that a client may be silent, and the time that it may take to receive an answer.
pub type Patience = [Duration; 2];

/// Serves one client. At a shutdown, the client gets the answers to the requests that were read.
pub async fn client<S: Stream>(
    stream: S,
    data: Rc<RefCell<Data>>,
    [idle, write]: Patience,
) -> io::Result<()> {
    let client = Client::new(data);
    let (mut reader, mut out, mut inbox) = (BufReader::new(stream), Vec::new(), None::<Inbox>);
    loop {
        let read = match &mut inbox {
            None => {
                until_begun(ignore_after(idle, reader.fill_more())).await.transpose()?.flatten()
            }
            Some(inbox) => match until_begun(race(reader.fill_more(), inbox.recv())).await {
                None | Some(Either::Right(Err(Error::SendersGone))) => None,
                Some(Either::Left(read)) => Some(read?),
                Some(Either::Right(message)) => {
                    timeout_after(write, reader.stream().write_all(&message?)).await?;
                    continue;
                }
            },
        };
        if matches!(read, None | Some(0)) {
            return Ok(());
        }
        loop {
            let (used, next) =
                client.data.borrow_mut().answer(client.number, reader.buffer(), &mut out);
            reader.consume(used);
            if !out.is_empty() {
                timeout_after(write, reader.stream().write_all(&out)).await?;
                out.clear();
            }
            match next {
                Next::Read => break,
                Next::Write => {}
                Next::Close => return Ok(()),
                Next::Subscribed(messages) => inbox = Some(messages),
            }
        }
    }
}

/// Makes the data, and starts the task that removes expired values until a shutdown begins.
pub async fn data() -> Rc<RefCell<Data>> {
    let deadline = connection_deadline().await;
    let data = Rc::new(RefCell::new(Data::new(move || deadline.now())));
    let swept = data.clone();
    let sweep = async move {
        while until_begun(sleep(SWEEP)).await.transpose()?.is_some() {
            swept.borrow_mut().sweep();
        }
        Ok::<_, Error>(())
    };
    spawn("sweep", sweep).detached().await;
    data
}

async fn main_task(place: Place, patience: Patience) -> io::Result<()> {
    let (mut listener, data) = (place.listen()?, data().await);
    let serve_one = |mut stream: net::Connection<net::TcpStream>| {
        let data = data.clone();
        async move { client(&mut *stream, data, patience).await }
    };
    serve(async || listener.accept_until_shutdown().await, CLIENTS, serve_one).await
}

fn main() -> ExitCode {
    let Redis { idle, write, server } = common::parse("redis", "A server for the Redis protocol");
    let own = [
        span("idle", idle),
        span("write", write),
        limit("clients", CLIENTS, "connections"),
        limit("request", REQUEST, "bytes"),
        limit("words", WORDS, "words"),
        limit("key", KEY, "bytes"),
        limit("memory", MEMORY, "bytes"),
        limit("answers", ANSWERS, "bytes"),
        limit("channels", CHANNELS, "channels"),
        limit("messages", MESSAGES, "messages"),
    ];
    let server = server.ready(0, &own);
    server::serve(&server, move |place| main_task(place, [idle, write]))
}
