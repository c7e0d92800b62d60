//! Sockets: try first, and trap on "not yet".

use std::io::{self, ErrorKind, Read, Write};
use std::net::{self, SocketAddr, ToSocketAddrs};

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

    pub async fn accept(&self) -> Result<TcpStream, Error> {
        loop {
            match self.0.accept() {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.0.readable().await?,
                Err(error) => return Err(error.into()),
                Ok((stream, _)) => {
                    stream.set_nonblocking(true)?;
                    let stream = TcpStream(Io::new(stream));
                    gate(|gate| gate.post(Post::Accepted(self.0.handle, stream.0.handle)));
                    return Ok(stream);
                }
            }
        }
    }
}

pub struct TcpStream(Io<net::TcpStream>);

impl TcpStream {
    /// Reads what is there, and waits until something is. Zero bytes: the peer has finished.
    pub async fn read(&self, buffer: &mut [u8]) -> Result<usize, Error> {
        loop {
            match (&*self.0).read(buffer) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => self.0.readable().await?,
                Err(error) => return Err(error.into()),
                Ok(count) => return Ok(self.moved(Direction::Read, count)),
            }
        }
    }

    pub async fn write_all(&self, mut bytes: &[u8]) -> Result<(), Error> {
        while !bytes.is_empty() {
            match (&*self.0).write(bytes) {
                Err(error) if error.kind() == ErrorKind::WouldBlock => {
                    self.0.ready(Direction::Write).await?;
                }
                Err(error) => return Err(error.into()),
                Ok(count) => bytes = &bytes[self.moved(Direction::Write, count)..],
            }
        }
        Ok(())
    }

    fn moved(&self, direction: Direction, count: usize) -> usize {
        gate(|gate| gate.post(Post::Moved(self.0.handle, direction, count)));
        count
    }
}
