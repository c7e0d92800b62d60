//! Processes that end with this one, however it ends.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::{CommandExt, parent_id};
use std::process::Command;

use crate::sys;

/// A command that runs `program` through `bench tied`. Child processes of the program are not tied,
/// but a program that it executes in its place is.
///
/// # Errors
///
/// Returns an error if the system does not find this program.
pub fn command(program: impl AsRef<OsStr>) -> io::Result<Command> {
    let mut command = Command::new(std::env::current_exe()?);
    command.arg("tied").arg(std::process::id().to_string()).arg(program);
    Ok(command)
}

/// The command `bench tied PARENT PROGRAM [WORD]...`: becomes that program, which ends with its
/// parent.
///
/// # Errors
///
/// Returns an error for wrong words, and the system's error, for example if there is no such
/// program.
pub fn become_program(words: &[&str]) -> Result<(), String> {
    let [parent, program, args @ ..] = words else {
        return Err("expected PARENT PROGRAM [WORD]... after `tied`".to_owned());
    };
    sys::end_with_parent().map_err(|error| error.to_string())?;
    if parent_id().to_string() != *parent {
        return Err("the process that wanted it has ended".to_owned());
    }
    Err(format!("{program}: {}", Command::new(program).args(args).exec()))
}
