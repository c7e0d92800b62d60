//! Writes a record of the program of the target `record` to the file that is named: a seed of its
//! corpus. `cargo run --bin seed -- corpus/record/with_log LOG` records the log too.

use std::{env, io};

use kernel::{Kernel, Options};

fn main() -> io::Result<()> {
    let words: Vec<String> = env::args().skip(1).collect();
    let [path, rest @ ..] = &words[..] else {
        return Err(io::Error::other("expected FILE, or FILE LOG"));
    };
    let mut kernel = Kernel::record_to(path, Options::new())?;
    if let [log] = rest {
        kernel.trace_to(std::fs::File::create(log)?);
    }
    kernel.run(trapline_fuzz::program()).map_err(io::Error::other)??;
    kernel.shutdown().map_err(io::Error::other)
}
