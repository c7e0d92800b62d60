//! What trapline costs, beside the others.
//!
//! `cargo run --release -p trapline-benches -- micro` prints the table of the small operations;
//! `-- counts` checks what does not wander against `benches/counts.txt`.

mod counts;
mod micro;
mod report;

use std::process::ExitCode;

const HELP: &str = "\
bench micro [--quick] [--json] [WORD]
                                   the small operations, beside peers; only those with WORD
bench micro PEER CASE COUNT        one of them, silently, for a tool that counts instructions
bench micro cases                  the names of all peers and cases
bench counts [--write] [WORD]      what does not wander, beside counts.txt; `--write` writes it anew
bench counts --without-trace PROG  this build with its trace off, beside a `bench` without a trace
";

fn main() -> ExitCode {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let words: Vec<&str> = words.iter().map(String::as_str).collect();
    match words.as_slice() {
        ["micro", rest @ ..] => micro::command(rest),
        ["counts", rest @ ..] => counts::command(rest),
        _ => {
            print!("{HELP}");
            ExitCode::from(u8::from(!words.is_empty() && words[0] != "--help") * 2)
        }
    }
}
