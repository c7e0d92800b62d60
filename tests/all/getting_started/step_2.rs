use std::io;
use std::process::ExitCode;

use kernel::Options;
use net::{BufReader, Connection, Stream, TcpListener, TcpStream, serve};

/// Clients at a time; others wait until one leaves.
const CLIENTS: u32 = 100;
/// The most bytes of a line.
const LINE: usize = 1024;

async fn client(mut stream: Connection<TcpStream>) -> io::Result<()> {
    let (reader, mut writer) = stream.split();
    let mut reader = BufReader::new(reader);
    let mut lines = reader.lines(LINE);
    while let Some(line) = lines.next().await? {
        let answer = format!("{}\n", String::from_utf8_lossy(line));
        writer.write_all(answer.as_bytes()).await?;
    }
    Ok(())
}

async fn program() -> io::Result<()> {
    let mut listener = TcpListener::bind("127.0.0.1:7000")?;
    println!("listening on {}", listener.local_addr()?);
    serve(async || listener.accept_until_shutdown().await, CLIENTS, client).await
}

fn main() -> ExitCode {
    kernel::main(Options::new(), program())
}
