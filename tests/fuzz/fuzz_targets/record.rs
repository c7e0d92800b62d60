//! The reader of records, under any bytes.
//!
//! One program is replayed from the bytes. It may differ from them, or stop where they end: both
//! are errors of the run. A panic is a finding.

#![no_main]

use std::fs::{File, OpenOptions};
use std::io::{Seek, Write};
use std::os::fd::AsRawFd;
use std::sync::{Mutex, OnceLock};
use std::{env, fs, io, process};

use kernel::{Kernel, Options, recorded_command};
use libfuzzer_sys::fuzz_target;
use trapline_fuzz::program;

/// A file without a name, for the bytes.
fn file() -> &'static Mutex<File> {
    static FILE: OnceLock<Mutex<File>> = OnceLock::new();
    FILE.get_or_init(|| {
        let path = env::temp_dir().join(format!("trapline-fuzz-{}.record", process::id()));
        let mut how = OpenOptions::new();
        let file = how.read(true).write(true).create_new(true).open(&path).expect("a new file");
        fs::remove_file(path).expect("the file is there");
        Mutex::new(file)
    })
}

/// Replays the program from the file.
fn replayed(path: &str) -> Result<Vec<u8>, kernel::RunError> {
    let mut kernel = Kernel::replay(path, Options::new()).map_err(kernel::RunError::Machine)?;
    kernel.trace_to(io::sink());
    let output = kernel.run(program());
    // A difference in the drop of a kernel that was not shut down is a panic.
    let ended = kernel.shutdown();
    let output = output?;
    ended?;
    Ok(output.unwrap_or_default())
}

fuzz_target!(|data: &[u8]| {
    let mut file = file().lock().expect("no run panics");
    file.set_len(0).and_then(|()| file.rewind()).expect("the file is ours");
    file.write_all(data).expect("the disk has room");
    let path = format!("/proc/self/fd/{}", file.as_raw_fd());
    let _ = recorded_command(&path);
    match replayed(&path) {
        Ok(output) => assert!(output.len() <= 64, "the length of a read"),
        Err(error) => assert!(!error.to_string().is_empty()),
    }
});
