//! monoio on its epoll driver, by hand.

use std::io;

use monoio::io::{AsyncReadRent, AsyncWriteRentExt};
use monoio::net::{TcpListener, TcpStream};
use monoio::{LegacyDriver, RuntimeBuilder};

use super::How;
use super::phases::{Monoio, Never, Timer, under};
use super::program::{Kept, Next, ROOM, WRITE};

pub fn serve(listener: std::net::TcpListener, how: How) -> io::Result<()> {
    if how.deadlines {
        let mut runtime = RuntimeBuilder::<LegacyDriver>::new().enable_timer().build()?;
        runtime.block_on(run::<Monoio>(listener, how.echo))
    } else {
        let mut runtime = RuntimeBuilder::<LegacyDriver>::new().build()?;
        runtime.block_on(run::<Never>(listener, how.echo))
    }
}

async fn run<T: Timer>(listener: std::net::TcpListener, echo: bool) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        drop(monoio::spawn(conn::<T>(stream, echo)));
    }
}

async fn conn<T: Timer>(mut stream: TcpStream, echo: bool) -> io::Result<()> {
    let mut timer = T::new();
    let (mut input, mut out) = (Vec::with_capacity(ROOM), Vec::new());
    let (mut kept, mut next) = (Kept::default(), Next::Request);
    while next != Next::Close {
        input.clear();
        let Some((n, read)) = under(&mut timer, next.span(), stream.read(input)).await else {
            break;
        };
        input = read;
        if n? == 0 {
            break;
        }
        // The written bytes are lent, so the two take turns.
        let answer = if echo {
            std::mem::swap(&mut input, &mut out);
            out
        } else {
            out.clear();
            next = kept.answer(&input, &mut out);
            out
        };
        let Some((written, lent)) = under(&mut timer, WRITE, stream.write_all(answer)).await else {
            break;
        };
        out = lent;
        if echo {
            std::mem::swap(&mut input, &mut out);
        }
        written?;
    }
    Ok(())
}
