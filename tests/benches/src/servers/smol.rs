//! smol: async-executor's local executor and async-io, by hand.

use std::io;
use std::net::{TcpListener, TcpStream};
use std::rc::Rc;

use async_executor::LocalExecutor;
use async_io::{Async, block_on};
use futures_lite::{AsyncReadExt, AsyncWriteExt};

use super::How;
use super::phases::{Never, Smol, Timer, under};
use super::program::{Kept, Next, ROOM, WRITE};

pub fn serve(listener: TcpListener, how: How) -> io::Result<()> {
    if how.deadlines { run::<Smol>(listener, how.echo) } else { run::<Never>(listener, how.echo) }
}

fn run<T: Timer>(listener: TcpListener, echo: bool) -> io::Result<()> {
    let executor = Rc::new(LocalExecutor::new());
    block_on(executor.run(async {
        let listener = Async::new(listener)?;
        loop {
            let (stream, _) = listener.accept().await?;
            executor.spawn(conn::<T>(stream, echo)).detach();
        }
    }))
}

async fn conn<T: Timer>(mut stream: Async<TcpStream>, echo: bool) -> io::Result<()> {
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
