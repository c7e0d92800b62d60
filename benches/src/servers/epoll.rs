//! The floor: epoll by libc, `recv` and `send`.

use std::io::{self, ErrorKind};
use std::net::TcpListener;
use std::os::fd::{AsRawFd, OwnedFd};

use super::How;
use super::reactor::{Reactor, Socket};
use crate::sys::{self, Epoll};

impl Socket for OwnedFd {
    #[inline]
    fn recv(&self, buf: &mut [u8]) -> io::Result<usize> {
        sys::recv(self.as_raw_fd(), buf)
    }
    #[inline]
    fn send(&self, buf: &[u8]) -> io::Result<usize> {
        sys::send(self.as_raw_fd(), buf)
    }
}

pub fn serve(listener: TcpListener, how: How) -> io::Result<()> {
    let mut epoll = Epoll::new()?;
    let listening = listener.as_raw_fd();
    epoll.add(listening, usize::MAX, false)?;
    let mut reactor = Reactor::new(how);
    let millis = reactor.patience().map_or(-1, |span| span.as_millis() as i32);
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
                let socket = match sys::accept(listening) {
                    Ok(socket) => socket,
                    Err(error) if error.kind() == ErrorKind::WouldBlock => break,
                    Err(error) => return Err(error),
                };
                let fd = socket.as_raw_fd();
                epoll.add(fd, fd as usize, true)?;
                reactor.insert(fd as usize, socket);
            }
        }
    }
}
