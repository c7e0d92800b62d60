//! A server for the Redis protocol (RESP2): strings that may expire, counters, and channels to
//! publish in. `redis-cli -p 6380` and `redis-benchmark -p 6380 -t ping,set,get,incr` work with it.
//!
//! A command runs to its end in one poll of its client's task, so no command sees half of another
//! one, and the data need no lock. Everything that a client can fill is limited.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::io;
use std::process::ExitCode;
use std::rc::Rc;
use std::time::Duration;

use common::limits::{limit, span};
use common::values::millis;
use net::{BufReader, Connection, Stream, TcpListener, TcpStream, serve};
use serving::server::{self, Place, Server};
use traps::channel::mpsc::{self, Receiver, Sender};
use traps::shutdown::until_begun;
use traps::{ConnectionDeadline, Either, Error, Time, connection_deadline, ignore_after, race};
use traps::{sleep, spawn, timeout_after};

/// Clients at a time. For one more, the client that has been silent longest is disconnected.
const CLIENTS: usize = 1000;
/// The most bytes of a request.
const REQUEST: usize = 512 * 1024;
/// The most words of a request, the name of the command included.
const WORDS: usize = 1024;
/// The most bytes of a key, or of the name of a channel.
const NAME: usize = 1024;
/// The most bytes of all keys and values, and the cost of a key in addition to its bytes.
const MEMORY: usize = 64 * 1024 * 1024;
const ENTRY: usize = 128;
/// Replies are sent when there are this many bytes of them, and only then is the next request read.
const REPLIES: usize = 64 * 1024;
/// The most channels of a subscriber.
const CHANNELS: usize = 100;
/// The most bytes of the messages that wait for a subscriber (a single message may be longer), and
/// the cost of a message in addition to its bytes. A subscriber that falls further behind is
/// disconnected.
const INBOX: usize = 512 * 1024;
const MESSAGE: usize = 64;
/// The most bytes of a line with a number.
const NUMBER: usize = 32;
/// The time between two searches for expired values.
const SWEEP: Duration = Duration::from_secs(1);

/// The options of the command line.
#[derive(clap::Args)]
#[command(mut_arg("addr", |addr| addr.default_value("127.0.0.1:6380")))]
struct Redis {
    /// Milliseconds that a client may be silent
    #[arg(long, value_name = "MS", default_value = "300000", value_parser = millis)]
    idle: Duration,
    /// Milliseconds that a client may take to receive replies
    #[arg(long, value_name = "MS", default_value = "30000", value_parser = millis)]
    write: Duration,
    #[command(flatten)]
    server: Server,
}

// ---- Requests ----------------------------------------------------------------------------------

/// The progress of parsing an incomplete request, so that it is not parsed from its start again for
/// each byte that arrives.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Part {
    /// The number of bytes already searched for the end of an inline request.
    pub searched: usize,
    /// The number of bytes that must have arrived before the request is parsed again.
    pub needed: usize,
}

/// The reason why no request was parsed.
enum Fault {
    Missing(Part),
    Wrong(&'static str),
}

impl From<&'static str> for Fault {
    fn from(why: &'static str) -> Fault {
        Fault::Wrong(why)
    }
}

/// Finds the line with a number at `start`. Returns the line without its end, and the start of the
/// next line.
fn line(input: &[u8], start: usize) -> Result<(&[u8], usize), Fault> {
    let end = input.len().min(start + NUMBER);
    let line = match input[start..end].iter().position(|byte| *byte == b'\n') {
        Some(length) => &input[start..start + length],
        None if end == start + NUMBER => return Err(Fault::Wrong("too long a number")),
        None => return Err(Fault::Missing(Part { searched: 0, needed: input.len() + 1 })),
    };
    Ok((line.strip_suffix(b"\r").unwrap_or(line), start + line.len() + 1))
}

fn number<N: std::str::FromStr>(text: &[u8]) -> Option<N> {
    std::str::from_utf8(text).ok()?.parse().ok()
}

/// The words of a request, and its length in bytes.
type Request<'a> = (Vec<&'a [u8]>, usize);

/// Reads the request at the start of `input`: `*2 $3 GET $1 k`, each on a separate line, or an
/// *inline* request, which is a line of words. The first `searched` bytes contain no end of line.
fn request(input: &[u8], searched: usize) -> Result<Request<'_>, Fault> {
    if input.first() != Some(&b'*') {
        let Some(end) = input[searched..].iter().position(|byte| *byte == b'\n') else {
            let part = Part { searched: input.len(), needed: input.len() + 1 };
            return Err(Fault::Missing(part));
        };
        let words = input[..searched + end].split(u8::is_ascii_whitespace);
        return Ok((words.filter(|word| !word.is_empty()).collect(), searched + end + 1));
    }
    let (count, mut used) = line(input, 1)?;
    let count: i64 = number(count).ok_or("invalid multibulk length")?;
    // Redis also ignores an empty array, and the null array, which has the length -1.
    let count = count.max(0) as usize;
    if count > WORDS {
        return Err(Fault::Wrong("invalid multibulk length"));
    }
    let mut words = Vec::with_capacity(count);
    for _ in 0..count {
        let (length, start) = line(input, used)?;
        let length = length.strip_prefix(b"$").ok_or("expected '$'")?;
        let length = number(length).filter(|length: &usize| *length <= REQUEST);
        used = start + length.ok_or("invalid bulk length")? + 2;
        let Some(word) = input.get(start..used) else {
            return Err(Fault::Missing(Part { searched: 0, needed: used }));
        };
        words.push(word.strip_suffix(b"\r\n").ok_or("expected an end of line")?);
    }
    Ok((words, used))
}

// ---- Replies -----------------------------------------------------------------------------------

/// The text of an error reply. Its first word is in capitals.
type Wrong = &'static str;

const ARGUMENTS: Wrong = "ERR wrong number of arguments, or an unknown option";
const NO_SPAN: Wrong = "ERR invalid expire time in 'set' command";
const NO_NUMBER: Wrong = "ERR value is not an integer or out of range";

fn put(out: &mut Vec<u8>, text: std::fmt::Arguments<'_>) {
    io::Write::write_fmt(out, text).expect("a vector takes every byte");
}

fn integer(out: &mut Vec<u8>, number: i64) {
    put(out, format_args!(":{number}\r\n"));
}

/// Appends a string of any bytes, or the null string.
fn bulk(out: &mut Vec<u8>, text: Option<&[u8]>) {
    let Some(text) = text else { return out.extend_from_slice(b"$-1\r\n") };
    put(out, format_args!("${}\r\n", text.len()));
    out.extend_from_slice(text);
    out.extend_from_slice(b"\r\n");
}

// ---- Data --------------------------------------------------------------------------------------

struct Value {
    bytes: Vec<u8>,
    expires: Option<Time>,
}

struct Subscriber {
    channels: BTreeSet<Vec<u8>>,
    inbox: Sender<Rc<[u8]>>,
    /// The cost of the messages that the subscriber has not taken.
    behind: Rc<Cell<usize>>,
}

impl Subscriber {
    /// Leaves a message for the subscriber. Returns whether its inbox has room.
    fn send(&self, message: &Rc<[u8]>) -> bool {
        let behind = self.behind.get();
        let has_room = behind == 0 || behind + MESSAGE + message.len() <= INBOX;
        self.behind.set(behind + MESSAGE + message.len());
        has_room && self.inbox.try_send(Rc::clone(message)).is_ok()
    }
}

/// The messages for a subscriber, on the side of its task.
pub struct Inbox {
    messages: Receiver<Rc<[u8]>>,
    behind: Rc<Cell<usize>>,
}

impl Inbox {
    /// Notes that the subscriber has taken a message.
    fn taken(&self, message: &[u8]) {
        self.behind.set(self.behind.get() - MESSAGE - message.len());
    }
}

/// The seat of a client. Its clones belong to the same client.
#[derive(Clone)]
struct Seat {
    /// The turn in which the client last sent something, or took a message.
    last: Rc<Cell<u64>>,
    /// Fires to disconnect the client: ends the wait of its task.
    end: Rc<ConnectionDeadline>,
}

/// The next step of a client's task after it has sent the replies.
pub enum Next {
    /// Read more, because the rest of the input is not a complete request.
    Read,
    /// Continue with the rest of the input, because the replies have reached their limit.
    Continue,
    /// Close the connection.
    Close,
    /// Receive messages too, because the client has become a subscriber.
    Subscribed(Inbox),
}

/// All data of the server.
pub struct Data {
    values: HashMap<Vec<u8>, Value>,
    /// The bytes of all values, as [`MEMORY`] limits them.
    size: usize,
    /// In the order of the clients, so that a replay wakes them in the same order.
    subscribers: BTreeMap<u64, Subscriber>,
    seats: BTreeMap<u64, Seat>,
    /// The number of times that a client has sent something.
    turn: u64,
    now: Box<dyn Fn() -> Time>,
}

impl Data {
    /// Makes empty data. `now` reads the clock.
    pub fn new(now: impl Fn() -> Time + 'static) -> Data {
        Data {
            values: HashMap::new(),
            size: 0,
            subscribers: BTreeMap::new(),
            seats: BTreeMap::new(),
            turn: 0,
            now: Box::new(now),
        }
    }

    /// Gives a client a seat. If all are taken, disconnects the client that has been silent
    /// longest.
    fn enter(&mut self, client: u64, seat: Seat) {
        if self.seats.len() == CLIENTS {
            let silent = self.seats.iter().min_by_key(|(_, seat)| seat.last.get());
            let silent = *silent.expect("there are seats").0;
            self.leave(silent).inspect(|seat| seat.end.fire());
        }
        self.note(&seat);
        self.seats.insert(client, seat);
    }

    fn leave(&mut self, client: u64) -> Option<Seat> {
        self.subscribers.remove(&client);
        self.seats.remove(&client)
    }

    /// Notes that a client is not silent.
    fn note(&mut self, seat: &Seat) {
        self.turn += 1;
        seat.last.set(self.turn);
    }

    /// Runs the complete requests at the start of `input`, and appends their replies to `out`.
    /// Returns the length of these requests. `part` is the progress of parsing the rest.
    pub fn answer(
        &mut self,
        client: u64,
        input: &[u8],
        part: &mut Part,
        out: &mut Vec<u8>,
    ) -> (usize, Next) {
        let mut used = 0;
        while out.len() < REPLIES {
            let rest = &input[used..];
            if rest.len() < part.needed {
                return (used, Next::Read);
            }
            let found = request(rest, part.searched);
            *part = Part::default();
            let words = match found {
                Ok((words, length)) if length <= REQUEST => {
                    used += length;
                    words
                }
                Err(Fault::Missing(missing)) if missing.needed <= REQUEST => {
                    *part = missing;
                    return (used, Next::Read);
                }
                wrong => {
                    let why = match wrong {
                        Err(Fault::Wrong(why)) => why,
                        _ => "too big request",
                    };
                    put(out, format_args!("-ERR Protocol error: {why}\r\n"));
                    return (used, Next::Close);
                }
            };
            match self.run(client, &words, out) {
                Ok(Next::Read) => {}
                Ok(next) => return (used, next),
                Err(wrong) => put(out, format_args!("-{wrong}\r\n")),
            }
        }
        (used, Next::Continue)
    }

    fn run(&mut self, client: u64, words: &[&[u8]], out: &mut Vec<u8>) -> Result<Next, Wrong> {
        let Some((name, words)) = words.split_first() else { return Ok(Next::Read) };
        match (&name.to_ascii_uppercase()[..], words) {
            (b"GET", [key]) => bulk(out, self.get(key).map(|value| &value.bytes[..])),
            (b"SET", [key, value, expiry @ ..]) => {
                let expires = match expiry {
                    [] => None,
                    [unit, span] => Some(self.after(unit, span)?),
                    _ => return Err(ARGUMENTS),
                };
                self.set(key, value, expires)?;
                out.extend_from_slice(b"+OK\r\n");
            }
            (b"DEL", [_, ..]) => {
                let found = words.iter().filter(|key| self.get(key).is_some() && self.remove(key));
                integer(out, found.count() as i64);
            }
            (b"INCR", [key]) => integer(out, self.increment(key)?),
            (b"EXPIRE", [key, seconds]) => {
                let seconds: i64 = number(seconds).ok_or(NO_NUMBER)?;
                // If the time has passed, the value is removed at the next access.
                let expires = (self.now)() + Duration::from_secs(seconds.max(0).unsigned_abs());
                let found = self.get(key).map(|value| value.expires = Some(expires));
                integer(out, found.is_some().into());
            }
            (b"TTL", [key]) => integer(out, self.seconds_left(key)),
            (b"PUBLISH", [channel, message]) => integer(out, self.publish(channel, message)),
            (b"SUBSCRIBE", [_, ..]) => return self.subscribe(client, words, out),
            (b"PING", []) => out.extend_from_slice(b"+PONG\r\n"),
            (b"PING" | b"ECHO", [text]) => bulk(out, Some(text)),
            (b"QUIT", _) => {
                out.extend_from_slice(b"+OK\r\n");
                return Ok(Next::Close);
            }
            (b"GET" | b"SET" | b"DEL" | b"INCR" | b"EXPIRE" | b"TTL", _)
            | (b"PUBLISH" | b"SUBSCRIBE" | b"PING" | b"ECHO", _) => return Err(ARGUMENTS),
            _ => return Err("ERR unknown command"),
        }
        Ok(Next::Read)
    }

    /// Finds a value. If it has expired, removes it instead.
    fn get(&mut self, key: &[u8]) -> Option<&mut Value> {
        if self.values.get(key)?.expires.is_some_and(|at| at <= (self.now)()) {
            self.remove(key);
        }
        self.values.get_mut(key)
    }

    fn set(&mut self, key: &[u8], bytes: &[u8], expires: Option<Time>) -> Result<(), Wrong> {
        if key.len() > NAME {
            return Err("ERR the key is too long");
        }
        let old = self.values.get_mut(key);
        let before = old.as_ref().map_or(0, |old| ENTRY + key.len() + old.bytes.len());
        let size = self.size - before + ENTRY + key.len() + bytes.len();
        if size > MEMORY {
            return Err("OOM command not allowed when used memory > 'maxmemory'");
        }
        self.size = size;
        let value = Value { bytes: bytes.to_vec(), expires };
        match old {
            Some(old) => *old = value,
            None => drop(self.values.insert(key.to_vec(), value)),
        }
        Ok(())
    }

    /// Removes a value. Returns whether there was one.
    fn remove(&mut self, key: &[u8]) -> bool {
        let value = self.values.remove(key);
        self.size -= value.as_ref().map_or(0, |value| ENTRY + key.len() + value.bytes.len());
        value.is_some()
    }

    /// Removes expired values, even if no client asks for them again.
    fn sweep(&mut self) {
        let now = (self.now)();
        let is_over = |value: &Value| value.expires.is_some_and(|at| at <= now);
        let expired = self.values.iter().filter(|(_, value)| is_over(value));
        for key in expired.map(|(key, _)| key.clone()).collect::<Vec<_>>() {
            self.remove(&key);
        }
    }

    fn increment(&mut self, key: &[u8]) -> Result<i64, Wrong> {
        let (old, expires) = match self.get(key) {
            Some(value) => (number(&value.bytes).ok_or(NO_NUMBER)?, value.expires),
            None => (0, None),
        };
        let new = i64::checked_add(old, 1).ok_or(NO_NUMBER)?;
        self.set(key, new.to_string().as_bytes(), expires)?;
        Ok(new)
    }

    /// Returns the time after a number of seconds (`EX`) or milliseconds (`PX`), at least one.
    fn after(&self, unit: &[u8], span: &[u8]) -> Result<Time, Wrong> {
        let unit = match &unit.to_ascii_uppercase()[..] {
            b"EX" => Duration::from_secs,
            b"PX" => Duration::from_millis,
            _ => return Err(ARGUMENTS),
        };
        let span = number(span).filter(|span| *span > 0).ok_or(NO_SPAN)?;
        Ok((self.now)() + unit(span))
    }

    /// Returns the seconds left, rounded up; -1 if the value stays, and -2 if there is none.
    fn seconds_left(&mut self, key: &[u8]) -> i64 {
        match self.get(key).map(|value| value.expires) {
            None => -2,
            Some(None) => -1,
            Some(Some(at)) => at.since((self.now)()).as_millis().div_ceil(1000) as i64,
        }
    }

    /// Sends a message to the subscribers of a channel, and returns their number. Disconnects a
    /// subscriber if its inbox is full.
    fn publish(&mut self, channel: &[u8], message: &[u8]) -> i64 {
        let (mut text, mut count) = (b"*3\r\n".to_vec(), 0);
        [b"message", channel, message].iter().for_each(|word| bulk(&mut text, Some(word)));
        let text = Rc::<[u8]>::from(text);
        self.subscribers.retain(|_, subscriber| {
            let is_meant = subscriber.channels.contains(channel);
            let is_sent = is_meant && subscriber.send(&text);
            count += i64::from(is_sent);
            is_sent || !is_meant
        });
        count
    }

    fn subscribe(
        &mut self,
        client: u64,
        names: &[&[u8]],
        out: &mut Vec<u8>,
    ) -> Result<Next, Wrong> {
        let mut next = Next::Read;
        let subscriber = self.subscribers.entry(client).or_insert_with(|| {
            let (inbox, messages) = mpsc::unbounded();
            let behind = Rc::new(Cell::new(0));
            next = Next::Subscribed(Inbox { messages, behind: behind.clone() });
            Subscriber { channels: BTreeSet::new(), inbox, behind }
        });
        for name in names {
            if subscriber.channels.len() == CHANNELS || name.len() > NAME {
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

/// How long a client may be silent, unless it subscribes, and how long it may take to receive
/// replies.
pub type Patience = [Duration; 2];

/// Serves client number `number`. At a shutdown it gets the replies to the requests that were read.
pub async fn client<S: Stream>(
    stream: S,
    number: u64,
    data: &RefCell<Data>,
    patience: Patience,
) -> io::Result<()> {
    let end = Rc::new(connection_deadline().await);
    let seat = Seat { last: Rc::default(), end };
    data.borrow_mut().enter(number, seat.clone());
    let ended = talk(stream, number, data, &seat, patience).await;
    data.borrow_mut().leave(number);
    // A disconnected client is not a failure.
    if seat.end.fired() { Ok(()) } else { ended }
}

async fn talk<S: Stream>(
    stream: S,
    number: u64,
    data: &RefCell<Data>,
    seat: &Seat,
    [idle, write]: Patience,
) -> io::Result<()> {
    let (mut reader, mut part, mut out) = (BufReader::new(stream), Part::default(), Vec::new());
    let mut inbox = None::<Inbox>;
    loop {
        let read = match &mut inbox {
            None => {
                until_begun(ignore_after(idle, reader.fill_more())).await.transpose()?.flatten()
            }
            Some(inbox) => {
                let message = inbox.messages.recv();
                match until_begun(race(reader.fill_more(), message)).await {
                    None | Some(Either::Right(Err(Error::SendersGone))) => None,
                    Some(Either::Left(read)) => Some(read?),
                    Some(Either::Right(message)) => {
                        let message = message?;
                        timeout_after(write, reader.stream().write_all(&message)).await?;
                        inbox.taken(&message);
                        data.borrow_mut().note(seat);
                        continue;
                    }
                }
            }
        };
        if matches!(read, None | Some(0)) {
            return Ok(());
        }
        data.borrow_mut().note(seat);
        loop {
            let answered = data.borrow_mut().answer(number, reader.buffer(), &mut part, &mut out);
            let (used, next) = answered;
            reader.consume(used);
            if !out.is_empty() {
                timeout_after(write, reader.stream().write_all(&out)).await?;
                out.clear();
            }
            match next {
                Next::Read => break,
                Next::Continue => {}
                Next::Close => return Ok(()),
                Next::Subscribed(messages) => inbox = Some(messages),
            }
        }
    }
}

/// Makes the data, and starts the task that removes expired values until a shutdown begins.
pub async fn data() -> Rc<RefCell<Data>> {
    // It is never armed, and is only used to read the clock without a trap.
    let clock = connection_deadline().await;
    let data = Rc::new(RefCell::new(Data::new(move || clock.now())));
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

/// Serves clients until a shutdown begins.
pub async fn serve_clients(mut listener: TcpListener, patience: Patience) -> io::Result<()> {
    let (data, mut clients) = (data().await, 0);
    let handle = |mut stream: Connection<TcpStream>| {
        clients += 1;
        let (number, data) = (clients, data.clone());
        async move { client(&mut *stream, number, &data, patience).await }
    };
    // One more connection, for which another client is disconnected.
    let limit = CLIENTS as u32 + 1;
    serve(async || listener.accept_peer_until_shutdown().await, limit, handle).await
}

async fn main_task(place: Place, patience: Patience) -> io::Result<()> {
    serve_clients(place.listen()?, patience).await
}

fn main() -> ExitCode {
    let Redis { idle, write, server } = common::parse("redis", "A server for the Redis protocol");
    let own = [
        span("idle", idle),
        span("write", write),
        limit("clients", CLIENTS, "connections"),
        limit("request", REQUEST, "bytes"),
        limit("words", WORDS, "words"),
        limit("name", NAME, "bytes"),
        limit("memory", MEMORY, "bytes"),
        limit("replies", REPLIES, "bytes"),
        limit("channels", CHANNELS, "channels"),
        limit("inbox", INBOX, "bytes"),
    ];
    let server = server.ready(0, &own);
    server::serve(&server, move |place| main_task(place, [idle, write]))
}
