//! Standard error, written by a thread of its own: whoever has a line for it does not wait for its
//! reader.

use std::fs::File;
use std::io::{self, ErrorKind, Write};
use std::mem;
use std::os::fd::AsFd;
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use super::log;

/// Bytes that wait for the reader, at most.
const ROOM: usize = 1 << 20;

/// How long the end of the process waits for the reader, at most.
const PATIENCE: Duration = Duration::from_secs(1);

/// How long the thread waits where standard error does not block.
const PAUSE: Duration = Duration::from_millis(10);

/// What waits for the reader.
struct Waiting {
    /// Whole lines.
    text: Vec<u8>,
    /// Bytes that the thread is about to write.
    in_hand: usize,
    /// Lines behind `text` for which there was no room.
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

/// Writes whole lines, in one piece. Never blocks: lines for which there is no room are lost, and
/// when there is room again a line says how many.
pub fn write(lines: &[u8]) {
    let mut waiting = waiting();
    if !waiting.has_thread {
        let thread = thread::Builder::new().name("stderr".to_owned()).spawn(pass_on);
        waiting.has_thread = thread.is_ok();
    }
    let room = ROOM.saturating_sub(waiting.text.len() + waiting.in_hand);
    // Behind a lost line nothing is kept until the count is written, so the count stands where the
    // lines would have stood.
    if !waiting.has_thread || waiting.lost > 0 || lines.len() > room {
        waiting.lost += lines.iter().filter(|byte| **byte == b'\n').count() as u64;
    } else {
        waiting.text.extend_from_slice(lines);
    }
    CHANGED.notify_all();
}

/// Waits until all is written, but not long: the reader may never come.
pub fn flush() {
    let waiting = waiting();
    if waiting.has_thread {
        drop(CHANGED.wait_timeout_while(waiting, PATIENCE, |waiting| !waiting.is_empty()));
    }
}

/// Calls [`flush`] when it is dropped, also by a panic.
pub struct FlushAtEnd;

impl Drop for FlushAtEnd {
    fn drop(&mut self) {
        flush();
    }
}

/// The life of the thread.
fn pass_on() {
    // Not behind the lock of `io::stderr`, for which others would wait.
    let own = io::stderr().as_fd().try_clone_to_owned();
    let mut out: Box<dyn Write> = match own {
        Ok(own) => Box::new(File::from(own)),
        Err(_) => Box::new(io::stderr()),
    };
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
            // A closed standard error is no error.
            Err(_) => return,
        }
    }
}
