//! trapline beside its peers. `bench --help` says how.

mod report;
mod servers;
mod sys;

use std::process::ExitCode;

fn serve(words: &[String]) -> Result<(), String> {
    let mut words = words.iter().map(String::as_str);
    let name = words.next().ok_or("serve what?")?;
    let server = servers::SERVERS.iter().find(|server| server.name == name);
    let server = server.ok_or_else(|| format!("no server `{name}`"))?;
    let mut how = servers::How { deadlines: false, echo: false };
    let mut addr = "127.0.0.1:0".to_owned();
    while let Some(word) = words.next() {
        match word {
            "--deadlines" => how.deadlines = true,
            "--echo" => how.echo = true,
            "--addr" => addr = words.next().ok_or("--addr: which?")?.to_owned(),
            other => return Err(format!("no option `{other}`")),
        }
    }
    let addr = addr.parse().map_err(|_| format!("--addr: `{addr}` is none"))?;
    servers::serve(server, how, addr).map_err(|error| format!("{name}: {error}"))
}

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    match serve(&words[1..]) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("bench: {error}");
            ExitCode::FAILURE
        }
    }
}
