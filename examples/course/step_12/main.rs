//! Step 12: an HTTP server that is hard to break, and a shutdown in phases.
//!
//! `step_12 [http|echo] [ADDRESS]`. The log goes to standard output. `step_12 --lesson NAME` runs a
//! lesson of the real kernel.

#[path = "../step_07/echo.rs"]
mod echo;
#[path = "../step_10/flag.rs"]
mod flag;
mod http;
mod lessons;
#[path = "../given/message.rs"]
mod message;
// This program uses only a part of the kernel.
#[allow(dead_code, unused_imports)]
#[path = "../step_11/kernel/mod.rs"]
mod mini;
mod shutdown;

// The lessons name the crates of the real kernel.
extern crate self as common;
extern crate self as kernel;
extern crate self as traps;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use flag::Flag;
use lessons::common::{Lesson, parse, run};
use lessons::{Policy, io};
use mini::*;
use shutdown::{Connections, shut_down};

const MAX_CONNECTIONS: usize = 512;
/// The pause after a failed accept, which most often found no descriptor left.
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

async fn main_task(listener: TcpListener, ctrl_c: Flag, is_echo: bool) -> Result<(), Error> {
    let connections = Rc::new(RefCell::default());
    let acceptor = spawn("acceptor", accept(listener, Rc::clone(&connections), is_echo)).await;
    ctrl_c.await;
    shut_down(acceptor, connections).await
}

fn main() -> std::io::Result<()> {
    let mut arguments = std::env::args().skip(1);
    let (mode, argument) = (arguments.next(), arguments.next());
    let is_echo = match mode.as_deref() {
        None | Some("http") => false,
        Some("echo") => true,
        Some("--lesson") => return lessons::run(&argument.unwrap_or_default()),
        Some(_) => return Err(std::io::Error::other("expected http, echo or --lesson")),
    };
    let mut kernel = Kernel::new(Real::new()?);
    let listener = TcpListener::bind(argument.as_deref().unwrap_or("127.0.0.1:8080"))?;
    let ctrl_c = Flag::default();
    let pressed = ctrl_c.clone();
    ctrlc::set_handler(move || pressed.raise()).map_err(std::io::Error::other)?;
    eprintln!("listening on {}", listener.address()?);
    kernel.run(main_task(listener, ctrl_c, is_echo))?.map_err(std::io::Error::other)
}
