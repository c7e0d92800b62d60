use std::io;
use std::process::ExitCode;

use kernel::Options;
use net::TcpListener;

async fn program() -> io::Result<()> {
    let mut listener = TcpListener::bind("127.0.0.1:7000")?;
    println!("listening on {}", listener.local_addr()?);
    loop {
        let (mut stream, peer) = listener.accept().await?;
        println!("{peer} is here");
        stream.write_all(b"hello\n").await?;
    }
}

fn main() -> ExitCode {
    kernel::main(Options::new(), program())
}
