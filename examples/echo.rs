//! A TCP server that sends back what it gets: one task per connection.

mod common;

use std::io;
use std::process::ExitCode;

use common::About;
use common::workers::{self, Place};
use net::{TcpListener, TcpStream};
use traps::{Either, Signal, race, spawn, wait_signal};

async fn echo(mut stream: TcpStream) -> io::Result<()> {
    let mut buf = [0; 16 * 1024];
    loop {
        let n = stream.read(&mut buf).await?;
        if n == 0 {
            return Ok(());
        }
        stream.write_all(&buf[..n]).await?;
    }
}

async fn serve(mut listener: TcpListener) -> io::Result<()> {
    loop {
        let (stream, _) = listener.accept().await?;
        // Nobody joins it: a connection that fails ends alone.
        spawn("conn", echo(stream)).await;
    }
}

async fn main_task(place: Place) -> io::Result<()> {
    let listener = place.listen().await?;
    let stop = wait_signal(&[Signal::Interrupt, Signal::Terminate]);
    match race(serve(listener), stop).await {
        Either::Left(failed) => failed,
        Either::Right(signal) => signal.map(|_| ()).map_err(io::Error::from),
    }
}

fn main() -> ExitCode {
    let what = "a TCP server that sends back what it gets";
    let args = About { name: "echo", what, server: true, policy: true }.parse();
    common::log_to_stderr();
    workers::serve(&args, main_task)
}
