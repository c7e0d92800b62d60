use std::error::Error;
use std::io;

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

fn main() -> Result<(), Box<dyn Error>> {
    kernel::run(program())??; // the kernel's error, and the program's
    Ok(())
}
