//! A client that always does the same: it asks on all its connections, then reads all the replies.

use std::io::{self, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use rustix::process::Signal;

use crate::load::{BODY, STATUS};
use crate::sys;

/// How long a server may take to stop or to fall asleep.
const PATIENCE: Duration = Duration::from_secs(30);

/// The process of a server, as its client sees it.
#[derive(Clone, Copy, Debug)]
pub struct Served {
    pub pid: u32,
    /// Whether client and server run in lockstep. The server sleeps in its wait, is stopped while
    /// the client writes, and finds all written bytes when it continues. So the number of its
    /// waits, and whether it finds a request, are the same on a busy machine. Each stop ends one
    /// wait of the server with `EINTR`.
    pub lockstep: bool,
}

impl Served {
    /// Runs the work that the server must find at once.
    fn at_once<T>(self, act: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        if !self.lockstep {
            return act();
        }
        self.wait_for("S")?;
        sys::signal(self.pid, Signal::STOP)?;
        // `t`: below strace.
        self.wait_for("Tt")?;
        let done = act();
        sys::signal(self.pid, Signal::CONT)?;
        done
    }

    /// Waits until the server has nothing to do.
    pub fn wait_until_asleep(self) -> io::Result<()> {
        self.wait_for("S")
    }

    fn wait_for(self, states: &str) -> io::Result<()> {
        let start = Instant::now();
        while !states.contains(sys::state(self.pid)?) {
            if start.elapsed() > PATIENCE {
                return Err(io::Error::other(format!("the server is never in state {states}")));
            }
            // The server has the same processor.
            std::thread::sleep(Duration::from_micros(50));
        }
        Ok(())
    }
}

/// The bytes to send, and those to come back.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Talk {
    /// `GET /plaintext` on connections that are kept.
    Http,
    /// 64 bytes, which are sent back.
    Echo,
    /// `GET` of a key of a Redis server, with a value of 64 bytes.
    Redis,
}

const GET: &[u8] = b"GET /plaintext HTTP/1.1\r\nHost: localhost\r\n\r\n";
const LAST: &[u8] = b"GET /plaintext HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
const GET_KEY: &[u8] = b"*2\r\n$3\r\nGET\r\n$3\r\nkey\r\n";
const SET_KEY: &[u8] = b"*3\r\n$3\r\nSET\r\n$3\r\nkey\r\n$64\r\n";
const MESSAGE: [u8; 64] = [b'm'; 64];

impl Talk {
    fn question(self) -> &'static [u8] {
        match self {
            Talk::Http => GET,
            Talk::Echo => &MESSAGE,
            Talk::Redis => GET_KEY,
        }
    }

    /// The request of a connection before anything is counted.
    fn first_question(self) -> Vec<u8> {
        match self {
            Talk::Redis => [SET_KEY, &MESSAGE, b"\r\n"].concat(),
            _ => self.question().to_vec(),
        }
    }

    /// Reads the first reply. Returns the length of each.
    fn first_answer(self, stream: &mut TcpStream) -> io::Result<usize> {
        if self == Talk::Echo {
            let mut answer = [0; MESSAGE.len()];
            stream.read_exact(&mut answer)?;
            self.verify(&answer)?;
            return Ok(MESSAGE.len());
        }
        if self == Talk::Redis {
            let mut answer = [0; 5];
            stream.read_exact(&mut answer)?;
            let is_set = answer == *b"+OK\r\n";
            let length = b"$64\r\n".len() + MESSAGE.len() + b"\r\n".len();
            return if is_set { Ok(length) } else { Err(io::Error::other("nothing was set")) };
        }
        let mut head = Vec::new();
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            stream.read_exact(&mut byte)?;
            head.push(byte[0]);
        }
        let length = content_length(&head).ok_or_else(|| io::Error::other("no Content-Length"))?;
        let mut answer = head;
        stream.take(length as u64).read_to_end(&mut answer)?;
        self.verify(&answer)?;
        Ok(answer.len())
    }

    /// Whether this is one complete and correct reply. Check, because a wrong one is cheaper.
    fn verify(self, answer: &[u8]) -> io::Result<()> {
        let right = match self {
            Talk::Http => answer.starts_with(STATUS) && answer.trim_ascii_end().ends_with(BODY),
            Talk::Echo => answer == MESSAGE,
            Talk::Redis => answer == [b"$64\r\n", &MESSAGE[..], b"\r\n"].concat(),
        };
        if right {
            return Ok(());
        }
        Err(io::Error::other(format!("a wrong answer: {}", String::from_utf8_lossy(answer))))
    }
}

fn content_length(head: &[u8]) -> Option<usize> {
    let text = std::str::from_utf8(head).ok()?;
    let mut fields = text.lines().filter_map(|line| line.split_once(':'));
    let (_, value) = fields.find(|(name, _)| name.eq_ignore_ascii_case("content-length"))?;
    value.trim().parse().ok()
}

/// The work of a client.
#[derive(Clone, Copy, Debug)]
pub struct Work {
    pub talk: Talk,
    pub connections: usize,
    /// Questions in one write.
    pub depth: usize,
    /// How often all connections ask. 0 means that each connection asks once, announces its end,
    /// and the next is opened when it has closed.
    pub rounds: usize,
}

impl Work {
    /// Does all of it.
    pub fn run(&self, addr: SocketAddr, served: Served) -> io::Result<()> {
        if self.rounds == 0 {
            return (0..self.connections).try_for_each(|_| self.last(addr, served));
        }
        let mut all = Vec::new();
        let mut length = 0;
        // One by one: the next is opened after the first reply.
        for _ in 0..self.connections {
            let mut stream = served.at_once(|| {
                let mut stream = TcpStream::connect(addr)?;
                stream.set_nodelay(true)?;
                stream.write_all(&self.talk.first_question())?;
                Ok(stream)
            })?;
            length = self.talk.first_answer(&mut stream)?;
            all.push(stream);
        }
        let question = self.talk.question().repeat(self.depth);
        let mut answer = vec![0; length * self.depth];
        for _ in 0..self.rounds {
            served.at_once(|| all.iter_mut().try_for_each(|stream| stream.write_all(&question)))?;
            for stream in &mut all {
                stream.read_exact(&mut answer)?;
                answer.chunks(length).try_for_each(|answer| self.talk.verify(answer))?;
            }
        }
        served.at_once(|| {
            drop(all);
            Ok(())
        })
    }

    fn last(&self, addr: SocketAddr, served: Served) -> io::Result<()> {
        let question = match self.talk {
            Talk::Http => LAST.to_vec(),
            Talk::Echo | Talk::Redis => self.talk.first_question(),
        };
        let mut stream = served.at_once(|| {
            let mut stream = TcpStream::connect(addr)?;
            stream.write_all(&question)?;
            Ok(stream)
        })?;
        if self.talk == Talk::Http {
            let mut answer = Vec::new();
            stream.read_to_end(&mut answer)?;
            return self.talk.verify(&answer);
        }
        self.talk.first_answer(&mut stream)?;
        served.at_once(|| stream.shutdown(std::net::Shutdown::Write))?;
        io::copy(&mut stream, &mut io::sink())?;
        Ok(())
    }
}
