//! Standard error, written by its own thread, so that a caller that writes a line does not wait for
//! the reader.

#[cfg(unix)]
use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::mem;
#[cfg(unix)]
use std::os::fd::AsFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::log;

/// The largest number of bytes that wait for the reader.
const ROOM: usize = 1 << 20;

/// The longest time that the end of the process waits for the reader.
const PATIENCE: Duration = Duration::from_secs(1);

/// The pause of the thread before it tries again, if standard error is full and in non-blocking
/// mode.
const PAUSE: Duration = Duration::from_millis(10);

/// The lines that wait for the reader.
struct Waiting {
    /// The complete lines that the thread has not taken yet.
    text: Vec<u8>,
    /// The number of bytes that the thread has taken and not yet written.
    in_hand: usize,
    /// The number of lines after `text` that were lost.
    lost: u64,
    has_thread: bool,
}

impl Waiting {
    fn is_empty(&self) -> bool {
        self.text.is_empty() && self.in_hand == 0 && self.lost == 0
    }
}

static WAITING: Mutex<Waiting> =
    Mutex::new(Waiting { text: Vec::new(), in_hand: 0, lost: 0, has_thread: false });

static CHANGED: Condvar = Condvar::new();

fn waiting() -> MutexGuard<'static, Waiting> {
    WAITING.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Queues whole lines for standard error, in one piece. Never blocks: if there is no room, lines
/// are lost, and a later log line reports their number.
pub fn write(lines: &[u8]) {
    let mut waiting = waiting();
    if !waiting.has_thread {
        let thread = thread::Builder::new().name("stderr".to_owned()).spawn(pass_on);
        waiting.has_thread = thread.is_ok();
    }
    let room = ROOM.saturating_sub(waiting.text.len() + waiting.in_hand);
    // After a lost line nothing is kept until the count is written, so the count is at the place of
    // the lost lines.
    if !waiting.has_thread || waiting.lost > 0 || lines.len() > room {
        waiting.lost += lines.iter().filter(|byte| **byte == b'\n').count() as u64;
    } else {
        waiting.text.extend_from_slice(lines);
    }
    CHANGED.notify_all();
}

/// Waits until all lines are written, but not longer than `PATIENCE`, because there may never be a
/// reader.
pub fn flush() {
    let waiting = waiting();
    if waiting.has_thread {
        drop(CHANGED.wait_timeout_while(waiting, PATIENCE, |waiting| !waiting.is_empty()));
    }
}

/// A guard that calls [`flush`] when it is dropped, even by a panic.
pub struct FlushAtEnd;

impl Drop for FlushAtEnd {
    fn drop(&mut self) {
        flush();
    }
}

/// Writes the waiting lines to standard error, forever. This is the body of the thread.
fn pass_on() {
    // Do not hold the lock of `io::stderr`, because other threads would wait for it.
    let mut out: Box<dyn Write> = Box::new(io::stderr());
    #[cfg(unix)]
    if let Ok(own) = io::stderr().as_fd().try_clone_to_owned() {
        out = Box::new(File::from(own));
    }
    loop {
        let empty = CHANGED.wait_while(waiting(), |waiting| waiting.is_empty());
        let mut waiting = empty.unwrap_or_else(PoisonError::into_inner);
        let mut text = mem::take(&mut waiting.text);
        let lost = mem::take(&mut waiting.lost);
        if lost > 0 {
            text.extend_from_slice(log::lost(lost).as_bytes());
        }
        waiting.in_hand = text.len();
        drop(waiting);
        write_out(&mut *out, &text);
        self::waiting().in_hand = 0;
        CHANGED.notify_all();
    }
}

fn write_out(out: &mut dyn Write, mut text: &[u8]) {
    while !text.is_empty() {
        match out.write(text) {
            Ok(0) => return,
            Ok(n) => text = &text[n..],
            Err(error) if error.kind() == ErrorKind::Interrupted => {}
            // Another process that shares it may have asked for that.
            Err(error) if error.kind() == ErrorKind::WouldBlock => thread::sleep(PAUSE),
            // A closed standard error is not an error.
            Err(_) => return,
        }
    }
}
