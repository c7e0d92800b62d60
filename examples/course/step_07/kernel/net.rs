//! Given: the sockets of TCP, over descriptors that a task can wait for.

use std::io::{self, Read, Write};
use std::net::{self, SocketAddr, ToSocketAddrs};
use std::panic::Location;

use super::*;

pub struct TcpListener(Io<net::TcpListener>);

impl TcpListener {
    pub fn bind(address: impl ToSocketAddrs) -> io::Result<TcpListener> {
        let listener = net::TcpListener::bind(address)?;
        listener.set_nonblocking(true)?;
        Ok(TcpListener(Io::new(listener)))
    }

    pub fn address(&self) -> io::Result<SocketAddr> {
        self.0.local_addr()
    }

    #[track_caller]
    pub fn accept(&self) -> impl Future<Output = Result<TcpStream, Error>> + '_ {
        let site = Location::caller();
        async move {
            let accept = |listener: &net::TcpListener| listener.accept();
            let (stream, _) = self.0.attempt(Direction::Read, site, accept).await?;
            stream.set_nonblocking(true)?;
            let stream = TcpStream(Io::new(stream));
            gate(|gate| gate.post(Post::Accepted(self.0.handle, stream.0.handle)));
            Ok(stream)
        }
    }
}

pub struct TcpStream(Io<net::TcpStream>);

impl TcpStream {
    /// Reads some bytes, and waits if none are there. Returns 0 if the peer has finished.
    #[track_caller]
    pub fn read(&self, buffer: &mut [u8]) -> impl Future<Output = Result<usize, Error>> {
        let site = Location::caller();
        async move {
            let read = |mut stream: &net::TcpStream| stream.read(buffer);
            let count = self.0.attempt(Direction::Read, site, read).await?;
            Ok(self.moved(Direction::Read, count))
        }
    }

    #[track_caller]
    pub fn write_all(&self, mut bytes: &[u8]) -> impl Future<Output = Result<(), Error>> {
        let site = Location::caller();
        async move {
            while !bytes.is_empty() {
                let write = |mut stream: &net::TcpStream| stream.write(bytes);
                let count = self.0.attempt(Direction::Write, site, write).await?;
                bytes = &bytes[self.moved(Direction::Write, count)..];
            }
            Ok(())
        }
    }

    fn moved(&self, direction: Direction, count: usize) -> usize {
        gate(|gate| gate.post(Post::Moved(self.0.handle, direction, count)));
        count
    }
}
