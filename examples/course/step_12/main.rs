//! Step 12: an HTTP server that is hard to break, and a shutdown in phases.
//!
//! `step_12 [http|echo] [ADDRESS]`. The log goes to standard output.

mod echo;
mod http;
// This program uses it in part.
#[allow(dead_code, unused_imports)]
#[path = "../step_11/kernel/mod.rs"]
mod kernel;
mod shutdown;

use std::cell::RefCell;
use std::io;
use std::rc::Rc;
use std::time::Duration;

use kernel::{Error, Kernel, Real, TcpListener, TcpStream, note, sleep, spawn};
use shutdown::{Connections, CtrlC, shut_down};

const MAX_CONNECTIONS: usize = 512;
/// After an accept that failed, most often because there are no descriptors left.
const PAUSE: Duration = Duration::from_millis(100);

/// Accepts until it is cancelled.
async fn accept(
    listener: TcpListener,
    connections: Connections,
    is_echo: bool,
) -> Result<(), Error> {
    for number in 1.. {
        let stream = loop {
            match listener.accept().await {
                Ok(stream) if connections.borrow().len() < MAX_CONNECTIONS => break stream,
                Ok(_) => note("too many connections: one is closed"),
                Err(Error::Io(error)) => {
                    note(error);
                    sleep(PAUSE).await?;
                }
                Err(interrupt) => return Err(interrupt),
            }
        };
        let state = Rc::default();
        let connection = serve(stream, Rc::clone(&state), connections.clone(), number, is_echo);
        let task = spawn(&format!("conn-{number}"), connection).await;
        connections.borrow_mut().insert(number, (task, state));
    }
    Ok(())
}

async fn serve(
    stream: TcpStream,
    state: Rc<http::State>,
    connections: Connections,
    number: u32,
    is_echo: bool,
) {
    let result = match is_echo {
        true => echo::serve(stream).await,
        false => http::serve(stream, state).await,
    };
    if let Err(error) = result {
        note(error);
    }
    connections.borrow_mut().remove(&number);
}

async fn main_task(listener: TcpListener, ctrl_c: CtrlC, is_echo: bool) -> Result<(), Error> {
    let connections = Rc::new(RefCell::default());
    let acceptor = spawn("acceptor", accept(listener, Rc::clone(&connections), is_echo)).await;
    ctrl_c.await;
    shut_down(acceptor, connections).await
}

fn main() -> io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let is_echo = match arguments.next().as_deref() {
        None | Some("http") => false,
        Some("echo") => true,
        Some(other) => return Err(io::Error::other(format!("expected http or echo, not {other}"))),
    };
    let address = arguments.next().unwrap_or("127.0.0.1:8080".to_owned());
    let mut kernel = Kernel::new(Real::new()?);
    let listener = TcpListener::bind(&address).map_err(|error| {
        io::Error::new(error.kind(), format!("cannot listen on {address}: {error}"))
    })?;
    eprintln!("listening on {}", listener.address()?);
    let ctrl_c = CtrlC::new().map_err(io::Error::other)?;
    kernel.run(main_task(listener, ctrl_c, is_echo))?.map_err(io::Error::other)
}
