//! The floor: bare epoll, `recv` and `send`.

use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};

use super::How;
use super::reactor::{Reactor, Socket};
use crate::sys::{self, Epoll};

impl Socket for OwnedFd {
    #[inline]
    fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        sys::recv(self, buf)
    }
    #[inline]
    fn send(&self, buf: &[u8]) -> io::Result<usize> {
        sys::send(self, buf)
    }
}

pub fn serve(listener: TcpListener, how: How) -> io::Result<()> {
    let mut epoll = Epoll::new()?;
    epoll.add(&listener, usize::MAX, false)?;
    let mut reactor = Reactor::new(how);
    let millis = reactor.patience().map(|span| span.as_millis() as u32);
    loop {
        let events = epoll.wait(millis)?;
        reactor.begin();
        for n in 0..events {
            let event = epoll.event(n);
            if event.token != usize::MAX {
                reactor.ready(event);
                continue;
            }
            loop {
                let socket = match sys::accept(&listener) {
                    Ok(socket) => socket,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                };
                let token = socket.as_raw_fd() as usize;
                epoll.add(&socket, token, true)?;
                reactor.insert(token, socket);
            }
        }
    }
}
