//! The service of notes: `notes 127.0.0.1:8080 notes.sqlite secret ann`.

use std::collections::BTreeMap;
use std::io;
use std::path::PathBuf;
use std::process::ExitCode;
use std::rc::Rc;

use common::Common;
use net::TcpListener;
use net::http::{Config, serve};
use trapline_example_notes::middleware::{Authenticated, Numbered};
use trapline_example_notes::{Notes, Store};

/// The options of the command line.
#[derive(clap::Args)]
struct Args {
    /// Where to listen; port 0 picks a free one
    #[arg(value_name = "HOST:PORT", default_value = "127.0.0.1:8080")]
    addr: String,
    /// The file of the database
    #[arg(value_name = "FILE", default_value = ":memory:")]
    file: PathBuf,
    /// The token of the one user
    #[arg(value_name = "TOKEN", default_value = "secret")]
    token: String,
    /// The name of the one user
    #[arg(value_name = "USER", default_value = "ann")]
    user: String,
    #[command(flatten)]
    common: Common,
}

async fn server(args: Args) -> io::Result<()> {
    let notes = Notes::new(Store::open(&args.file)?);
    let users = BTreeMap::from([(args.token, args.user)]);
    let handler = Numbered::new(Authenticated::new(notes, users));
    let listener = TcpListener::bind(args.addr)?;
    args.common.say_where(listener.local_addr()?);
    serve(listener, Rc::new(handler), Rc::new(Config::default())).await
}

fn main() -> ExitCode {
    let args: Args = common::parse("notes", "An HTTP service with SQLite");
    common::run(args.common.until_signal(), server(args))
}
