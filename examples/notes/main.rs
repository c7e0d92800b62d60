//! The service of notes: `notes ADDR FILE TOKEN USER`.

use std::collections::BTreeMap;
use std::env::args;
use std::error::Error;
use std::io;
use std::path::PathBuf;
use std::rc::Rc;

use kernel::{Kernel, Options, Real};
use net::TcpListener;
use net::http::{Config, serve};
use trapline_example_notes::middleware::{Authenticated, Numbered};
use trapline_example_notes::{Notes, Store};
use traps::Signal;

async fn server(addr: &str, file: PathBuf, users: BTreeMap<String, String>) -> io::Result<()> {
    let notes = Notes::new(Store::open(&file)?);
    let handler = Numbered::new(Authenticated::new(notes, users));
    let listener = TcpListener::bind(addr)?;
    println!("listening on {}", listener.local_addr()?);
    serve(listener, Rc::new(handler), Rc::new(Config::default())).await
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = args().skip(1).collect();
    let [addr, file, token, user] = &args[..] else {
        return Err("usage: notes ADDR FILE TOKEN USER".into());
    };
    let users = BTreeMap::from([(token.clone(), user.clone())]);
    let options = Options::new().shutdown_on(&[Signal::Interrupt, Signal::Terminate]);
    let mut kernel = Kernel::with_options(Real::new()?, options);
    kernel.run(server(addr, file.into(), users))??;
    Ok(kernel.shutdown()?)
}
