//! The floor's loop on mio.

use std::io::{self, ErrorKind, Read, Write};
use std::net::TcpListener;
use std::os::fd::AsRawFd;

use mio::net::TcpStream;
use mio::{Events, Interest, Poll, Token};

use super::How;
use super::reactor::{Reactor, Socket};
use crate::sys::Ready;

impl Socket for TcpStream {
    #[inline]
    fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        (&mut &*self).read(buf)
    }
    #[inline]
    fn send(&self, buf: &[u8]) -> io::Result<usize> {
        (&mut &*self).write(buf)
    }
}

pub fn serve(listener: TcpListener, how: How) -> io::Result<()> {
    let mut poll = Poll::new()?;
    let mut events = Events::with_capacity(1024);
    let mut listener = mio::net::TcpListener::from_std(listener);
    let listening = Token(usize::MAX);
    poll.registry().register(&mut listener, listening, Interest::READABLE)?;
    let mut reactor = Reactor::new(how);
    let both = Interest::READABLE | Interest::WRITABLE;
    loop {
        match poll.poll(&mut events, reactor.patience()) {
            Err(error) if error.kind() == ErrorKind::Interrupted => continue,
            done => done?,
        }
        reactor.begin();
        for event in &events {
            if event.token() != listening {
                let ended = event.is_read_closed() || event.is_error();
                reactor.ready(Ready {
                    token: event.token().0,
                    readable: ended || event.is_readable(),
                    ended,
                    writable: event.is_writable(),
                });
                continue;
            }
            loop {
                let mut socket = match listener.accept() {
                    Ok((socket, _)) => socket,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                };
                let token = socket.as_raw_fd() as usize;
                poll.registry().register(&mut socket, Token(token), both)?;
                reactor.insert(token, socket);
            }
        }
    }
}
