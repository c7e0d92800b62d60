//! One echo connection.

use super::kernel::{Error, TcpStream};

pub async fn serve(stream: TcpStream) -> Result<(), Error> {
    let mut buffer = [0; 4096];
    loop {
        let count = stream.read(&mut buffer).await?;
        if count == 0 {
            return Ok(());
        }
        stream.write_all(&buffer[..count]).await?;
    }
}
