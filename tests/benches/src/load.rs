//! The load: one thread, one epoll instance, no parser. Every reply is checked.

use std::io::{self, ErrorKind};
use std::net::{SocketAddr, TcpStream};
use std::os::fd::OwnedFd;
use std::time::{Duration, Instant};

use crate::sys::{Epoll, recv, send};

/// The workload of the clients.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// One request, its answer, and again on the same connection.
    Http,
    /// [`DEPTH`] requests in one write, their answers, and again.
    Pipe,
    /// A connection for each request, which the server closes.
    Close,
    /// A message and its echo, and again.
    Echo,
}

/// Requests in a write, pipelined.
pub const DEPTH: u64 = 16;

/// Their names.
pub const KINDS: &str = "http, pipe, close or echo";

const REQUEST: &[u8] = b"GET /plaintext HTTP/1.1\r\nHost: 127.0.0.1:8080\r\n\r\n";
const LAST: &[u8] = b"GET /plaintext HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nConnection: close\r\n\r\n";
pub const STATUS: &[u8] = b"HTTP/1.1 200 OK\r\n";
pub const BODY: &[u8] = b"Hello, World!";
const MESSAGE: &[u8] = &[b'm'; 64];

/// A run fails if a server is silent for this long.
const PATIENCE: Duration = Duration::from_secs(20);

impl Kind {
    /// # Errors
    ///
    /// Returns an error if there is none with that name.
    pub fn named(name: &str) -> Result<Kind, String> {
        match name {
            "http" => Ok(Kind::Http),
            "pipe" => Ok(Kind::Pipe),
            "close" => Ok(Kind::Close),
            "echo" => Ok(Kind::Echo),
            other => Err(format!("--kind: expected {KINDS}, not `{other}`")),
        }
    }

    /// The bytes that a client sends before it waits.
    fn turn(self) -> Vec<u8> {
        match self {
            Kind::Http => REQUEST.to_vec(),
            Kind::Pipe => REQUEST.repeat(DEPTH as usize),
            Kind::Close => LAST.to_vec(),
            Kind::Echo => MESSAGE.to_vec(),
        }
    }

    /// How many answers end that wait.
    pub fn answers(self) -> u64 {
        if self == Kind::Pipe { DEPTH } else { 1 }
    }
}

/// Its result.
#[derive(Clone, Copy, Debug)]
pub struct Done {
    pub answers: u64,
    pub seconds: f64,
}

struct Client {
    socket: OwnedFd,
    /// Bytes of the answers that are waited for.
    got: usize,
}

/// Connected clients.
pub struct Load {
    addr: SocketAddr,
    kind: Kind,
    epoll: Epoll,
    clients: Vec<Option<Client>>,
    turn: Vec<u8>,
    /// Bytes of one answer: as many as the first one had.
    length: usize,
    input: Vec<u8>,
    /// For a client whose reply arrives in pieces, the bytes so far.
    pieces: Vec<Vec<u8>>,
}

fn wrong(what: impl Into<String>) -> io::Error {
    io::Error::new(ErrorKind::InvalidData, what.into())
}

fn silent() -> io::Error {
    let text = format!("the server has not answered for {} s", PATIENCE.as_secs());
    io::Error::new(ErrorKind::TimedOut, text)
}

impl Load {
    /// Connects the clients. Learns the length of a reply from the first one.
    ///
    /// # Errors
    ///
    /// Returns the system's error, and `InvalidData` for an unexpected reply.
    pub fn connect(addr: SocketAddr, kind: Kind, connections: usize) -> io::Result<Load> {
        let turn = kind.turn();
        let length = if kind == Kind::Echo { MESSAGE.len() } else { learn(addr, kind)? };
        let mut load = Load {
            addr,
            kind,
            epoll: Epoll::new()?,
            clients: Vec::new(),
            turn,
            length,
            input: vec![0; 64 * 1024],
            pieces: Vec::new(),
        };
        load.grow(connections)?;
        Ok(load)
    }

    /// Adds this many clients.
    ///
    /// # Errors
    ///
    /// The system's.
    pub fn grow(&mut self, more: usize) -> io::Result<()> {
        for place in self.clients.len()..self.clients.len() + more {
            self.clients.push(None);
            self.pieces.push(Vec::new());
            if self.kind != Kind::Close {
                self.open(place)?;
            }
        }
        Ok(())
    }

    fn open(&mut self, place: usize) -> io::Result<()> {
        let stream = TcpStream::connect(self.addr)?;
        stream.set_nonblocking(true)?;
        // A client sends one write and then waits for the reply, so there is nothing to gather.
        self.epoll.add(&stream, place, false)?;
        self.clients[place] = Some(Client { socket: stream.into(), got: 0 });
        Ok(())
    }

    /// Sends the bytes of a client before it waits.
    fn begin(&mut self, place: usize) -> io::Result<()> {
        if self.kind == Kind::Close {
            self.open(place)?;
        }
        self.pieces[place].clear();
        let client = self.clients[place].as_mut().ok_or(ErrorKind::NotConnected)?;
        client.got = 0;
        let sent = send(&client.socket, &self.turn)?;
        // Less than a segment, into an empty buffer.
        if sent == self.turn.len() { Ok(()) } else { Err(wrong("a request did not fit")) }
    }

    /// Reads the bytes that have arrived. Returns whether the reply is complete.
    fn take(&mut self, place: usize) -> io::Result<bool> {
        // A connection that has had its answer may have one more event.
        let Some(client) = self.clients[place].as_mut() else { return Ok(false) };
        let whole = self.length * self.kind.answers() as usize;
        let n = match recv(&client.socket, &mut self.input) {
            Err(error) if error.kind() == ErrorKind::WouldBlock => return Ok(false),
            done => done?,
        };
        if n == 0 {
            let ended = self.kind == Kind::Close && client.got == whole;
            return if ended { Ok(true) } else { Err(wrong("the server closed a connection")) };
        }
        let (before, got) = (client.got, client.got + n);
        client.got = got;
        if before == 0 && n == whole {
            verify(self.kind, &self.input[..n], self.length)?;
        } else {
            let pieces = &mut self.pieces[place];
            pieces.extend_from_slice(&self.input[..n]);
            if got > whole {
                return Err(wrong(format!("{got} bytes instead of {whole}")));
            }
            if got == whole {
                verify(self.kind, pieces, self.length)?;
            }
        }
        if self.kind == Kind::Close && got == whole {
            // The end may have arrived with it.
            let end = recv(&client.socket, &mut self.input);
            return match end {
                Ok(0) => Ok(true),
                Ok(_) => Err(wrong("more than an answer")),
                Err(error) if error.kind() == ErrorKind::WouldBlock => Ok(false),
                Err(error) => Err(error),
            };
        }
        Ok(got == whole)
    }

    /// Runs until this many replies have arrived, or until the time is over and no reply is
    /// outstanding.
    ///
    /// # Errors
    ///
    /// Returns the system's error, `InvalidData` for a wrong reply, and `TimedOut` if the server
    /// falls silent.
    pub fn run(&mut self, requests: u64, span: Duration) -> io::Result<Done> {
        self.run_from(0, requests, span)
    }

    /// Runs the load with the clients from this one on.
    ///
    /// # Errors
    ///
    /// As for [`Load::run`].
    pub fn run_from(&mut self, first: usize, requests: u64, span: Duration) -> io::Result<Done> {
        let each = self.kind.answers();
        let turns = requests.div_ceil(each);
        let start = Instant::now();
        let (mut begun, mut done) = (0, 0);
        let mut ended = start;
        for place in first..self.clients.len() {
            if begun < turns {
                self.begin(place)?;
                begun += 1;
            }
        }
        let mut over = false;
        while done < begun {
            let events = self.epoll.wait(Some(PATIENCE.as_millis() as u32))?;
            if events == 0 {
                return Err(silent());
            }
            for n in 0..events {
                let place = self.epoll.event(n).token;
                if !self.take(place)? {
                    continue;
                }
                done += 1;
                if self.kind == Kind::Close {
                    self.clients[place] = None;
                }
                if begun < turns && !over {
                    self.begin(place)?;
                    begun += 1;
                }
            }
            ended = Instant::now();
            over = over || ended - start >= span;
        }
        Ok(Done { answers: done * each, seconds: (ended - start).as_secs_f64() })
    }
}

/// Asks once and reads up to the end.
fn learn(addr: SocketAddr, kind: Kind) -> io::Result<usize> {
    use std::io::{Read, Write};
    let mut stream = TcpStream::connect(addr)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    // The reply to a last request may announce the close, and be longer.
    stream.write_all(if kind == Kind::Close { LAST } else { REQUEST })?;
    let mut answer = Vec::new();
    let mut piece = [0; 4096];
    while !answer.ends_with(BODY) {
        let n = stream.read(&mut piece).map_err(|error| match error.kind() {
            ErrorKind::WouldBlock | ErrorKind::TimedOut => silent(),
            _ => error,
        })?;
        if n == 0 {
            return Err(wrong("the server closed instead of answering"));
        }
        answer.extend_from_slice(&piece[..n]);
    }
    verify(Kind::Http, &answer, answer.len())?;
    Ok(answer.len())
}

/// Whether all of `bytes` are correct replies.
fn verify(kind: Kind, bytes: &[u8], length: usize) -> io::Result<()> {
    let right = match kind {
        Kind::Echo => bytes == MESSAGE,
        Kind::Http | Kind::Pipe | Kind::Close => {
            bytes.chunks(length).all(|answer| answer.starts_with(STATUS) && answer.ends_with(BODY))
        }
    };
    if right {
        return Ok(());
    }
    Err(wrong(format!(
        "a wrong answer: {:?}",
        String::from_utf8_lossy(&bytes[..bytes.len().min(300)])
    )))
}
