//! compio on its polling driver, by hand.

use std::io;

use compio::BufResult;
use compio::driver::{DriverType, ProactorBuilder};
use compio::io::{AsyncRead, AsyncWriteExt};
use compio::net::{TcpListener, TcpStream};
use compio::runtime::RuntimeBuilder;

use super::How;
use super::phases::{Compio, Never, Timer, under};
use super::program::{Kept, Next, ROOM, WRITE};

pub fn serve(listener: std::net::TcpListener, how: How) -> io::Result<()> {
    let mut driver = ProactorBuilder::new();
    driver.driver_type(DriverType::Poll);
    let runtime = RuntimeBuilder::new().with_proactor(driver).build()?;
    if how.deadlines {
        runtime.block_on(run::<Compio>(listener, how.echo))
    } else {
        runtime.block_on(run::<Never>(listener, how.echo))
    }
}

async fn run<T: Timer>(listener: std::net::TcpListener, echo: bool) -> io::Result<()> {
    let listener = TcpListener::from_std(listener)?;
    loop {
        let (stream, _) = listener.accept().await?;
        compio::runtime::spawn(conn::<T>(stream, echo)).detach();
    }
}

async fn conn<T: Timer>(mut stream: TcpStream, echo: bool) -> io::Result<()> {
    let mut timer = T::new();
    let (mut input, mut out) = (Vec::with_capacity(ROOM), Vec::new());
    let (mut kept, mut next) = (Kept::default(), Next::Request);
    while next != Next::Close {
        input.clear();
        let read = under(&mut timer, next.span(), stream.read(input)).await;
        let Some(BufResult(n, read)) = read else { break };
        input = read;
        if n? == 0 {
            break;
        }
        if echo {
            std::mem::swap(&mut input, &mut out);
        } else {
            out.clear();
            next = kept.answer(&input, &mut out);
        }
        let written = under(&mut timer, WRITE, stream.write_all(out)).await;
        let Some(BufResult(written, lent)) = written else { break };
        out = lent;
        if echo {
            std::mem::swap(&mut input, &mut out);
        }
        written?;
    }
    Ok(())
}
