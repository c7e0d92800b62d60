//! The tape: the inputs of a thread from outside, in their order, recorded or played.
//!
//! A program and its kernel are deterministic, except for their *inputs*: a reading of a clock, the
//! arrivals of a wait, the result of a system call. Code that needs an input calls [`input`], and
//! names its kind. If a tape records, `input` gets the value from outside and writes it down. If a
//! tape plays, `input` returns the next value of the record, and nothing outside is touched. So a
//! recorded run can be run again, and writes the same log.
//!
//! A record is text. A line that begins with `<` is one *answer* from outside: its kind, then its
//! words. All other lines are lines of the log, if the log was on. An answer comes before the lines
//! of the log that it caused:
//!
//! ```text
//! <read ok 18 GET / HTTP/1.0\r\n\r\n
//!  0.013121       3  #0021   4 conn-1   io       c1 read = 18
//! ```
//!
//! When a tape plays, the next line must be the answer to the next call of `input`, or the next
//! line of the log. If it is not, the program *diverges* from the record. Then the tape stops, and
//! keeps a report. A call that the record cannot answer ends the run: it unwinds with a panic, up
//! to [`until_stop`]. Outside of `until_stop`, and while the thread unwinds already, a call returns
//! at once: an error, zero, or the reading of a clock that moves.
//!
//! A tape belongs to a thread. Without a tape, `input` costs one test.

use std::cell::{Cell, RefCell};
use std::io::{self, BufRead, ErrorKind, Read, Write};
use std::mem::{self, ManuallyDrop};
use std::panic::{AssertUnwindSafe, Location, catch_unwind, resume_unwind};
use std::str::FromStr;
use std::thread;

use crate::context;
use crate::core::gate;
use crate::error::drop_quietly;

/// The state of the tape of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// There is no tape.
    Off,
    /// The tape writes the inputs down.
    Records,
    /// The tape returns recorded inputs.
    Plays,
    /// The tape was playing and has stopped. The next call of [`input`] ends the run, if it is
    /// inside [`until_stop`].
    Stopped,
}

/// The largest number of bytes in a line of a record.
const LINE: usize = 1 << 28;

/// The number of bytes that a report shows of a line.
const SHOWN: usize = 300;

/// The number of bytes that are collected before a write to the file of a record, so that most
/// inputs cost no system call.
const KEPT: usize = 1 << 16;

thread_local! {
    static MODE: Cell<Mode> = const { Cell::new(Mode::Off) };
    /// The last reading of the clock.
    static CLOCK: Cell<u64> = const { Cell::new(0) };
    /// Whether a stop unwinds. It does so only if [`until_stop`] is there to catch the panic.
    static UNWINDS: Cell<bool> = const { Cell::new(false) };
    /// Without a destructor, because the order of destructors of thread-locals is open: a kernel in
    /// a thread-local of its owner needs its tape until it is dropped. A tape that has ended owns
    /// nothing, so nothing leaks.
    static TAPE: ManuallyDrop<RefCell<Tape>> =
        const { ManuallyDrop::new(RefCell::new(Tape::NONE)) };
}

struct Tape {
    out: Option<Box<dyn Write>>,
    name: String,
    from: Option<Box<dyn BufRead>>,
    /// While recording: the lines that are not in the file yet. While playing: the next line of the
    /// record, without its newline.
    line: Vec<u8>,
    /// The number of `line` in the record.
    number: u64,
    /// The number of bytes before the record reaches its limit.
    room: u64,
    /// The first error of the file.
    failed: Option<io::Error>,
    /// The reason why the record ends before the program, until it is reported.
    lost: Option<String>,
    /// The largest serial number of the keys that were made before the tape began.
    serial: u32,
    /// The call site of the last operation.
    site: Option<&'static Location<'static>>,
    /// Whether the record contains the log.
    has_log: bool,
    /// The number of the last line of the log that the program has written.
    last: u64,
    /// The reason why the tape stopped.
    stop: Option<TapeStop>,
}

impl Tape {
    const NONE: Tape = Tape {
        out: None,
        name: String::new(),
        from: None,
        line: Vec::new(),
        number: 0,
        room: 0,
        failed: None,
        lost: None,
        serial: 0,
        site: None,
        has_log: false,
        last: 0,
        stop: None,
    };
}

/// The reason why a tape has stopped playing.
#[derive(Clone, Debug)]
pub struct TapeStop {
    /// Whether the program differs from the record.
    pub is_divergence: bool,
    /// The line of the record, the program's own line, and the call site.
    pub report: String,
    /// The number of the last line of the log, or 0.
    pub last: u64,
}

/// Returns the state of the tape of this thread.
#[inline]
#[must_use]
pub fn mode() -> Mode {
    MODE.get()
}

/// Returns whether this code runs in a replay: in the program, or in one of its jobs, on the thread
/// that runs the job again. A program needs this only if it waits for the world outside its kernel:
/// in a replay, that wait would never end.
///
/// ```
/// // A job that waits for another process.
/// let wait = || if traps::is_replaying() { "as recorded" } else { "for real" };
/// assert_eq!(wait(), "for real");
/// ```
#[must_use]
pub fn is_replaying() -> bool {
    answers() || context::is_in_replayed_job()
}

/// Returns whether the tape of this thread returns recorded inputs, so that nothing outside must be
/// touched.
#[inline]
#[must_use]
pub fn answers() -> bool {
    matches!(MODE.get(), Mode::Plays | Mode::Stopped)
}

/// Begins to record the inputs of this thread. When the record has `room` bytes, it ends with a
/// line that says so, and the program continues. `name` is the name of the file, for errors.
pub fn record(out: Box<dyn Write>, room: u64, name: String) {
    begin(Mode::Records, Tape { out: Some(out), room, name, ..Tape::NONE });
}

/// Begins to return the inputs of this thread from a record.
pub fn play(from: Box<dyn BufRead>) {
    begin(Mode::Plays, Tape { from: Some(from), ..Tape::NONE });
    with(Tape::advance);
}

fn begin(mode: Mode, tape: Tape) {
    drop(with(|old| mem::replace(old, Tape { serial: gate::last_serial(), ..tape })));
    MODE.set(mode);
    CLOCK.set(0);
    gate::set_listening(true);
}

/// Ends the tape of this thread.
///
/// # Errors
///
/// Returns the first error of the file of a record.
pub fn end() -> io::Result<()> {
    flush();
    MODE.set(Mode::Off);
    let Tape { failed, .. } = with(|tape| mem::replace(tape, Tape::NONE));
    failed.map_or(Ok(()), Err)
}

/// Checks that this thread has no kernel: a new tape would replace that of the kernel.
///
/// # Panics
///
/// Panics if this thread has a kernel.
pub fn claim() {
    let rule = "rule: a thread has one kernel at a time, and this thread has one already";
    assert!(gate::with_shared(|_| ()).is_none(), "{rule}");
}

/// Returns whether [`lost`] would return a reason. Costs two tests.
#[must_use]
pub fn has_lost() -> bool {
    MODE.get() == Mode::Off && with(|tape| tape.lost.is_some())
}

/// Returns the reason why the record of this thread ends before its program: its file has failed,
/// or it has reached its limit. Later calls return `None`.
#[cold]
#[must_use]
pub fn lost() -> Option<String> {
    with(|tape| tape.lost.take())
}

/// Writes the collected lines to the file of the record. The kernel calls this before it sleeps, so
/// that a killed program leaves a record of all that it did.
pub fn flush() {
    with(Tape::flush);
}

/// Returns the next input of this kind: from outside by `live`, or from the record by `get`. While
/// recording, `put` writes the value of `live` down.
#[inline]
pub fn input<T>(
    kind: &'static str,
    live: impl FnOnce() -> T,
    put: impl FnOnce(&T, &mut Words),
    get: impl FnOnce(&mut Answer<'_>) -> T,
) -> T {
    match MODE.get() {
        Mode::Off => live(),
        Mode::Records => {
            let value = live();
            write(kind, |words| put(&value, words));
            value
        }
        Mode::Plays | Mode::Stopped => {
            unwind_if_stopped();
            let words = with(|tape| tape.words(kind));
            let rest = words.as_deref().unwrap_or_default();
            let mut answer = Answer { rest, is_wrong: words.is_none() };
            let value = get(&mut answer);
            if answer.is_wrong || !answer.rest.is_empty() {
                diverge(&format!("the program asks for `{kind}`"));
            } else {
                with(Tape::advance);
            }
            value
        }
    }
}

/// Returns the reading of a clock, which never goes back. The record has only the differences
/// between readings, so its lines are short.
pub fn clock(live: impl FnOnce() -> u64) -> u64 {
    let last = CLOCK.get();
    let live = || live().saturating_sub(last);
    let step = input("now", live, |step, words| words.number(*step), |it| it.number());
    // A tape that has stopped must still move the clock: the `Drop` of an unwound value can wait
    // for a time in a loop.
    let now = last + if MODE.get() == Mode::Stopped { 1000 } else { step };
    CLOCK.set(now);
    now
}

/// Records that an event of this kind has happened, or expects it in the record.
pub fn mark(kind: &'static str) {
    input(kind, || (), |(), _| (), |_| ());
}

/// Returns whether the next line of the record is an answer that begins with these words.
#[must_use]
pub fn is_next(words: &str) -> bool {
    MODE.get() == Mode::Plays && with(|tape| tape.has(words))
}

/// Returns whether the record ends here, before its program.
#[must_use]
pub fn is_cut_off() -> bool {
    MODE.get() == Mode::Plays && with(|tape| is_cut(&tape.line))
}

/// Returns the largest serial number of the keys that were made before the tape began. An earlier
/// kernel of the thread may have made some, so a record has the differences to it.
#[must_use]
pub fn serial() -> u32 {
    with(|tape| tape.serial)
}

/// Stores the call site of an operation, for the report of a divergence.
#[cold]
pub fn at(site: &'static Location<'static>) {
    with(|tape| tape.site = Some(site));
}

/// Records a line of the log, with its end.
pub fn log(line: &[u8]) {
    if MODE.get() == Mode::Records {
        with(|tape| {
            let start = tape.line.len();
            tape.line.extend_from_slice(line);
            tape.keep(start);
        });
    }
}

/// Compares a line of the log with the next line of a record that contains the log. If they are
/// equal, moves on to the line after it; if not, the program diverges. `compare` returns `None` for
/// a line that need not be in the record. `number` is the number of the line in the log.
pub fn follow(number: u64, line: &str, compare: impl FnOnce(&[u8]) -> Option<bool>) {
    with(|tape| tape.last = number);
    if MODE.get() == Mode::Plays && with(|tape| tape.has_log) {
        match with(|tape| compare(&tape.line)) {
            Some(true) => with(Tape::advance),
            Some(false) => {
                let line = shown(line.trim_end().as_bytes());
                diverge(&format!("the log of the program has:\n  {line}"));
            }
            None => {}
        }
    }
}

/// Calls `code`, and catches the panic with which a stopped tape unwinds it.
///
/// # Errors
///
/// Returns the reason if the tape stops during the call. `code` was unwound then, unless it
/// returned without another input.
///
/// # Panics
///
/// Panics if `code` panics and the tape does not stop.
pub fn until_stop<T>(code: impl FnOnce() -> T) -> Result<T, TapeStop> {
    // If the tape has stopped before, nothing unwinds: the clean-up of a stopped replay must run to
    // its end.
    let before = UNWINDS.replace(MODE.get() != Mode::Stopped);
    let ran = catch_unwind(AssertUnwindSafe(code));
    UNWINDS.set(before);
    match with(|tape| tape.stop.take()) {
        Some(stop) => {
            drop_quietly(ran);
            Err(stop)
        }
        None => Ok(ran.unwrap_or_else(|panic| resume_unwind(panic))),
    }
}

/// Unwinds the code in [`until_stop`] if the tape has stopped. Does nothing if the thread unwinds
/// already: a second panic would end the process.
pub fn unwind_if_stopped() {
    if MODE.get() == Mode::Stopped && UNWINDS.get() && !thread::panicking() {
        resume_unwind(Box::new("the replay has stopped"));
    }
}

/// Returns whether this is the end of a record instead of a line.
fn is_cut(line: &[u8]) -> bool {
    line.is_empty() || line.starts_with(b"<end ")
}

/// Returns bytes as text for a report: at most `SHOWN` bytes, without control characters.
#[must_use]
pub fn shown(bytes: &[u8]) -> String {
    let (cut, dots) = if bytes.len() > SHOWN { (SHOWN, "...") } else { (bytes.len(), "") };
    let text = String::from_utf8_lossy(&bytes[..cut]);
    let plain =
        |letter: char| if letter.is_control() { char::REPLACEMENT_CHARACTER } else { letter };
    text.chars().map(plain).chain(dots.chars()).collect()
}

/// Stops a tape that plays, because the program differs from the record. `how` is the end of the
/// report's sentence.
#[cold]
pub fn diverge(how: &str) {
    differ(how, "");
}

/// Stops a tape that plays, like [`diverge`]. The report ends with `done`, the program's own data.
#[cold]
pub fn differ(how: &str, done: &str) {
    let done = if done.is_empty() { String::new() } else { format!("\n  {done}") };
    let task = gate::task_number().map_or(String::new(), |task| format!(", in task {task}"));
    with(|tape| {
        let site = tape.site.map_or(String::new(), |site| format!(", after {site}"));
        let (number, line) = (tape.number, shown(&tape.line));
        let has = if line.is_empty() { "ends" } else { "has" };
        let report =
            format!("line {number} of the record {has}:\n  {line}\n{how}{task}{site}{done}");
        // If the record was cut off, the program is not to blame for continuing.
        let is_divergence = !is_cut(&tape.line);
        tape.stop(is_divergence, report);
    });
    unwind_if_stopped();
}

/// Stops a tape that plays. `is_divergence` says whether the program differs from the record.
#[cold]
pub fn stop(is_divergence: bool, report: String) {
    with(|tape| tape.stop(is_divergence, report));
    unwind_if_stopped();
}

/// Returns the reason why the tape of this thread has stopped playing. Returns `None` if it has not
/// stopped, and once [`until_stop`] has returned the reason.
#[must_use]
pub fn stopped() -> Option<TapeStop> {
    with(|tape| tape.stop.clone())
}

/// Computes the hash that a record has in place of sent bytes: FNV-1a over words of eight bytes,
/// and then over the last bytes, folded to 32 bits.
#[must_use]
pub fn hash(bytes: &[u8]) -> u64 {
    let step = |hash: u64, word: u64| (hash ^ word).wrapping_mul(0x0100_0000_01b3);
    let (words, last) = bytes.as_chunks();
    let words = words.iter().map(|word| u64::from_le_bytes(*word));
    let last = last.iter().map(|byte| u64::from(*byte));
    let hash = words.chain(last).fold(0xcbf2_9ce4_8422_2325, step);
    (hash ^ hash >> 32) & 0xffff_ffff
}

fn with<R>(use_it: impl FnOnce(&mut Tape) -> R) -> R {
    TAPE.with(|tape| use_it(&mut tape.borrow_mut()))
}

fn write(kind: &str, put: impl FnOnce(&mut Words)) {
    let mut words = Words(with(|tape| mem::take(&mut tape.line)));
    let start = words.0.len();
    words.0.push(b'<');
    words.0.extend_from_slice(kind.as_bytes());
    put(&mut words);
    words.0.push(b'\n');
    with(|tape| {
        tape.line = words.0;
        tape.keep(start);
    });
}

impl Tape {
    /// Adds the lines from `start` on to the record. If it has no room for them, ends the recording
    /// with a line that says so.
    fn keep(&mut self, start: usize) {
        let size = (self.line.len() - start) as u64;
        if size > self.room || size > LINE as u64 {
            self.line.truncate(start);
            self.line.extend_from_slice(b"<end the record has reached its limit\n");
            self.lost = Some(format!("the record {} has reached its limit", self.name));
            MODE.set(Mode::Off);
        }
        self.room = self.room.saturating_sub(size);
        if self.line.len() >= KEPT || MODE.get() == Mode::Off {
            self.flush();
        }
    }

    fn flush(&mut self) {
        let Some(out) = &mut self.out else { return };
        if let Err(error) = out.write_all(&self.line) {
            let text = format!("cannot write the record {}: {error}", self.name);
            self.lost = Some(text.clone());
            self.failed = Some(io::Error::new(error.kind(), text));
            self.out = None;
            MODE.set(Mode::Off);
        }
        self.line.clear();
    }

    /// Reads the next line of the record. A line that begins with `#` is the header of a log, which
    /// shows that the record contains the log.
    fn advance(&mut self) {
        self.read();
        while self.line.starts_with(b"#") {
            self.has_log = true;
            self.read();
        }
    }

    fn read(&mut self) {
        self.line.clear();
        self.number += 1;
        let Some(from) = &mut self.from else { return };
        if let Err(error) = from.take(LINE as u64).read_until(b'\n', &mut self.line) {
            self.line = format!("<end the record cannot be read: {error}\n").into_bytes();
        }
        if self.line.pop() != Some(b'\n') {
            // The program that recorded was killed as it wrote this line.
            self.line.clear();
        }
    }

    /// Returns whether the next line is an answer that begins with these words.
    fn has(&self, words: &str) -> bool {
        let rest = self.line.strip_prefix(b"<").and_then(|it| it.strip_prefix(words.as_bytes()));
        rest.is_some_and(|rest| rest.is_empty() || rest[0] == b' ')
    }

    /// Returns the words of the next answer, if it is of this kind.
    fn words(&self, kind: &str) -> Option<Vec<u8>> {
        let is_it = MODE.get() == Mode::Plays && self.has(kind);
        is_it.then(|| self.line[1 + kind.len()..].to_owned())
    }

    fn stop(&mut self, is_divergence: bool, report: String) {
        if MODE.get() == Mode::Plays {
            MODE.set(Mode::Stopped);
            self.stop = Some(TapeStop { is_divergence, report, last: self.last });
        }
    }
}

/// Whether a byte is written unchanged. A table, because long bodies pass through it.
static PLAIN: [bool; 256] = {
    let mut plain = [false; 256];
    let mut byte = b' ';
    while byte <= b'~' {
        plain[byte as usize] = byte != b'\\';
        byte += 1;
    }
    plain
};

/// The words of an answer, for writing. Each begins with a space.
#[derive(Debug)]
pub struct Words(Vec<u8>);

impl Words {
    /// Writes a number.
    pub fn number(&mut self, mut number: u64) {
        let (mut digits, mut start) = ([b' '; 21], 20);
        digits[start] = b'0' + (number % 10) as u8;
        while number > 9 {
            number /= 10;
            start -= 1;
            digits[start] = b'0' + (number % 10) as u8;
        }
        self.0.extend_from_slice(&digits[start - 1..]);
    }

    /// Writes a word, which has no space.
    pub fn word(&mut self, word: &str) {
        self.0.push(b' ');
        self.0.extend_from_slice(word.as_bytes());
    }

    /// Writes bytes as the last word of the answer, which can contain spaces: printable ASCII is
    /// unchanged, anything else has an escape of Rust's byte strings.
    pub fn bytes(&mut self, mut bytes: &[u8]) {
        self.0.push(b' ');
        while let Some(at) = bytes.iter().position(|byte| !PLAIN[usize::from(*byte)]) {
            self.0.extend_from_slice(&bytes[..at]);
            match bytes[at] {
                b'\r' => self.0.extend_from_slice(b"\\r"),
                b'\n' => self.0.extend_from_slice(b"\\n"),
                other => self.0.extend(other.escape_ascii()),
            }
            bytes = &bytes[at + 1..];
        }
        self.0.extend_from_slice(bytes);
    }

    /// Writes a result: `ok` and its value, or `error`, its number and its text. If the error is
    /// not from the system, the name of its kind replaces the number.
    pub fn result<T>(&mut self, result: &io::Result<T>, put: impl FnOnce(&T, &mut Words)) {
        match result {
            Ok(value) => {
                self.word("ok");
                put(value, self);
            }
            Err(error) => {
                self.word("error");
                match error.raw_os_error() {
                    Some(number) => self.number(number.unsigned_abs().into()),
                    None => self.word(&format!("{:?}", error.kind())),
                }
                self.bytes(error.to_string().as_bytes());
            }
        }
    }
}

/// An answer of the record, for reading. A missing or malformed word reads as zero or empty, and
/// the program then diverges from the record.
#[derive(Debug)]
pub struct Answer<'a> {
    rest: &'a [u8],
    is_wrong: bool,
}

impl<'a> Answer<'a> {
    /// Reads a word. Returns an empty word at the end.
    pub fn word(&mut self) -> &'a str {
        let rest = self.rest.strip_prefix(b" ").unwrap_or_default();
        let end = rest.iter().position(|byte| *byte == b' ').unwrap_or(rest.len());
        self.rest = &rest[end..];
        std::str::from_utf8(&rest[..end]).unwrap_or_default()
    }

    /// Skips the next word if it equals `word`. Returns whether it did.
    pub fn next_if(&mut self, word: &str) -> bool {
        let before = self.rest;
        let is_it = self.word() == word;
        if !is_it {
            self.rest = before;
        }
        is_it
    }

    /// Returns whether no word is left.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.rest.is_empty()
    }

    /// Reads a word as a value. A malformed word reads as the default of its type.
    pub fn parsed<T: FromStr + Default>(&mut self) -> T {
        self.word().parse().unwrap_or_else(|_| self.wrong())
    }

    /// Reads a number.
    pub fn number(&mut self) -> u64 {
        self.parsed()
    }

    /// Reads the rest of the answer as bytes.
    pub fn bytes(&mut self) -> Vec<u8> {
        let rest = mem::take(&mut self.rest).strip_prefix(b" ");
        rest.map_or_else(|| self.wrong(), unescaped)
    }

    /// Reads a result.
    ///
    /// # Errors
    ///
    /// Returns the recorded error. Also returns an error if the answer is malformed.
    pub fn result<T>(&mut self, get: impl FnOnce(&mut Self) -> T) -> io::Result<T> {
        match self.word() {
            "ok" => Ok(get(self)),
            "error" => {
                let (which, text) = (self.word(), self.bytes());
                let text = String::from_utf8_lossy(&text).into_owned();
                if let Ok(number) = which.parse() {
                    return Err(io::Error::from_raw_os_error(number));
                }
                Err(match kind(which) {
                    Some(kind) if io::Error::from(kind).to_string() == text => kind.into(),
                    Some(kind) => io::Error::new(kind, text),
                    None => (self.wrong::<()>(), io::Error::other(text)).1,
                })
            }
            _ => {
                self.is_wrong = true;
                Err(io::Error::other("the replay has stopped"))
            }
        }
    }

    /// Marks the answer as malformed, so that the program diverges. Returns a value to continue
    /// with.
    pub fn wrong<T: Default>(&mut self) -> T {
        self.is_wrong = true;
        T::default()
    }
}

/// Returns the kind of error with this name, by a search through the kinds of the system's errors.
/// They include the unstable kinds, which have no name in the code of a stable compiler.
fn kind(name: &str) -> Option<ErrorKind> {
    let of_system = (0..200).map(|number| io::Error::from_raw_os_error(number).kind());
    let others = [
        ErrorKind::InvalidData,
        ErrorKind::Other,
        ErrorKind::UnexpectedEof,
        ErrorKind::Unsupported,
        ErrorKind::WriteZero,
    ];
    of_system.chain(others).find(|kind| format!("{kind:?}") == name)
}

/// Returns bytes as one word: with the escapes of Rust's byte strings, and without a space.
#[must_use]
pub fn escaped(bytes: &[u8]) -> String {
    bytes.escape_ascii().to_string().replace(' ', "\\x20")
}

/// Returns the bytes of a text with escapes.
#[must_use]
pub fn unescaped(text: &[u8]) -> Vec<u8> {
    let mut text = text.iter().copied();
    let digit = |byte: u8| char::from(byte).to_digit(16).map(|digit| digit as u8);
    let byte = || match text.next()? {
        b'\\' => match text.next()? {
            b'r' => Some(b'\r'),
            b'n' => Some(b'\n'),
            b't' => Some(b'\t'),
            b'x' => Some(digit(text.next()?)? << 4 | digit(text.next()?)?),
            other => Some(other),
        },
        other => Some(other),
    };
    std::iter::from_fn(byte).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Records some answers, plays them, and returns what `get` has read.
    fn replayed<T>(put: impl FnOnce(&(), &mut Words), get: impl FnOnce(&mut Answer<'_>) -> T) -> T {
        let mut words = Words(Vec::new());
        put(&(), &mut words);
        let line = [b"<kind", &words.0[..], b"\n"].concat();
        play(Box::new(io::Cursor::new(line)));
        let read = Cell::new(None);
        input("kind", || (), |(), _| (), |answer| read.set(Some(get(answer))));
        assert!(stopped().is_none(), "{:?}", stopped());
        end().unwrap();
        read.take().unwrap()
    }

    #[test]
    fn all_bytes_come_back_from_a_line_of_text() {
        let all: Vec<u8> = (0..=255).chain(*b"\\x41 \\ end ").collect();
        let put = |(): &(), words: &mut Words| {
            words.number(all.len() as u64);
            words.bytes(&all);
            assert!(words.0.is_ascii() && !words.0.contains(&b'\n'));
        };
        let (count, bytes) = replayed(put, |answer| (answer.number(), answer.bytes()));
        assert_eq!((count, bytes), (all.len() as u64, all.clone()));
        let put = |(): &(), words: &mut Words| words.word(&escaped(&all));
        assert_eq!(replayed(put, |answer| unescaped(answer.word().as_bytes())), all);
    }

    #[test]
    fn numbers_and_errors_come_back() {
        for number in [0, 9, 10, 99, 100, u64::MAX] {
            assert_eq!(replayed(|(), words| words.number(number), |it| it.number()), number);
        }
        let uncategorized = io::Error::from_raw_os_error(0).kind();
        let errors = [
            io::Error::from_raw_os_error(104),
            io::Error::other("no such name\n"),
            io::Error::new(uncategorized, "no such name"),
            io::Error::new(ErrorKind::InvalidInput, "expected NAME:PORT"),
            io::Error::new(ErrorKind::UnexpectedEof, ""),
            ErrorKind::TimedOut.into(),
            ErrorKind::InvalidFilename.into(),
            ErrorKind::WriteZero.into(),
        ];
        for error in errors {
            let same = |error: &io::Error| {
                (error.to_string(), error.kind(), error.raw_os_error(), format!("{error:?}"))
            };
            let before = same(&error);
            let failed: io::Result<()> = Err(error);
            let put = |(): &(), words: &mut Words| words.result(&failed, |(), _| ());
            let read = replayed(put, |answer| answer.result(|_| ())).unwrap_err();
            assert_eq!(same(&read), before);
        }
    }

    #[test]
    fn a_tape_that_has_stopped_answers_at_once_and_keeps_its_first_report() {
        play(Box::new(io::Cursor::new("<one 1\n<two 2\n")));
        let number = |kind| input(kind, || 0, |_, _| (), |answer| answer.number());
        assert_eq!((number("one"), number("three"), number("two")), (1, 0, 0));
        let stop = stopped().unwrap();
        let report = "line 2 of the record has:\n  <two 2\nthe program asks for `three`";
        assert_eq!((stop.is_divergence, &*stop.report), (true, report));
        end().unwrap();
        assert_eq!((mode(), input("one", || 7, |_, _| (), |_| 0)), (Mode::Off, 7));
    }
}
