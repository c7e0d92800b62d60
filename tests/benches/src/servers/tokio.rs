//! tokio's current-thread runtime, by hand: a read buffer for each connection, as usual; or, as
//! `tokio-lean`, `readable` and `try_read` into one buffer for all.

use std::cell::{Cell, RefCell};
use std::io::{self, ErrorKind};

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};

use super::How;
use super::phases::{Never, Timer, Tokio, under};
use super::program::{Kept, Next, ROOM, WRITE};

/// With its clock only if there are deadlines.
pub fn runtime(how: How) -> io::Result<Runtime> {
    let mut builder = Builder::new_current_thread();
    if how.deadlines {
        builder.enable_time();
    }
    builder.enable_io().build()
}

pub fn serve(listener: std::net::TcpListener, how: How) -> io::Result<()> {
    if how.deadlines { usual::<Tokio>(listener, how) } else { usual::<Never>(listener, how) }
}

fn usual<T: Timer + Send>(listener: std::net::TcpListener, how: How) -> io::Result<()> {
    runtime(how)?.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(conn::<T>(stream, how.echo));
        }
    })
}

async fn conn<T: Timer>(mut stream: TcpStream, echo: bool) -> io::Result<()> {
    let mut timer = T::new();
    let (mut input, mut out) = (vec![0; ROOM], Vec::new());
    let (mut kept, mut next) = (Kept::default(), Next::Request);
    while next != Next::Close {
        let Some(n) = under(&mut timer, next.span(), stream.read(&mut input)).await else {
            break;
        };
        let n = n?;
        if n == 0 {
            break;
        }
        let answer = if echo {
            &input[..n]
        } else {
            out.clear();
            next = kept.answer(&input[..n], &mut out);
            &out[..]
        };
        let Some(written) = under(&mut timer, WRITE, stream.write_all(answer)).await else {
            break;
        };
        written?;
    }
    Ok(())
}

pub fn serve_lean(listener: std::net::TcpListener, how: How) -> io::Result<()> {
    if how.deadlines { lean::<Tokio>(listener, how) } else { lean::<Never>(listener, how) }
}

thread_local! {
    // The buffers that connections use one at a time. Not in an `Rc`, because a task that holds one
    // needs a `LocalSet`.
    static INPUT: RefCell<[u8; ROOM]> = const { RefCell::new([0; ROOM]) };
    static OUT: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
}

fn lean<T: Timer + Send>(listener: std::net::TcpListener, how: How) -> io::Result<()> {
    runtime(how)?.block_on(async {
        let listener = TcpListener::from_std(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            tokio::spawn(lean_conn::<T>(stream, how.echo));
        }
    })
}

async fn lean_conn<T: Timer>(mut stream: TcpStream, echo: bool) -> io::Result<()> {
    let mut timer = T::new();
    let (mut kept, mut next) = (Kept::default(), Next::Request);
    while next != Next::Close {
        let Some(readable) = under(&mut timer, next.span(), stream.readable()).await else { break };
        readable?;
        let mut out = OUT.take();
        let read = INPUT.with_borrow_mut(|input| {
            let n = stream.try_read(input)?;
            if echo {
                out.extend_from_slice(&input[..n]);
            } else {
                next = kept.answer(&input[..n], &mut out);
            }
            Ok(n)
        });
        match read {
            Ok(0) => {
                OUT.set(out);
                break;
            }
            Ok(_) => {}
            Err(error) if io::Error::kind(&error) == ErrorKind::WouldBlock => {
                OUT.set(out);
                continue;
            }
            Err(error) => return Err(error),
        }
        let Some(written) = under(&mut timer, WRITE, stream.write_all(&out)).await else { break };
        written?;
        out.clear();
        OUT.set(out);
    }
    Ok(())
}
