//! Processes that end with this one, however it ends.

use std::ffi::OsStr;
use std::io;
use std::os::unix::process::{CommandExt, parent_id};
use std::process::Command;

use crate::sys;

/// A command that runs `program` by way of `bench tied`. What the program runs in its turn is not
/// tied by that; what it becomes is.
///
/// # Errors
///
/// The system does not know this program.
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
/// An error in the words, or the system's: there is no such program.
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
