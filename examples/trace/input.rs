//! The input of the tool: a file or standard input, with a progress bar if reading takes long.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, IsTerminal, Read, Seek as _, SeekFrom, Write};
use std::path::Path;
use std::process;

use indicatif::{ProgressBar, ProgressStyle};
use testing::trace::Line;

use trace_tool::look::Writer;
use trace_tool::model::{Text, Trace};
use trace_tool::reading::{Read as Each, read_lines};
use trace_tool::whole::Whole;

use crate::file::{is_virtual, whole_lines, writer};

/// A file of more than this gets a progress bar.
const LARGE: u64 = 50_000_000;

/// The input.
pub struct Source {
    input: Input,
    /// The number of bytes read so far.
    bar: ProgressBar,
    /// The process that is writing the input.
    pub writer: Option<Writer>,
    /// Whether its clock is virtual, so that no time passes by itself.
    is_virtual: bool,
}

enum Input {
    /// The first bytes of a file, which can be read twice.
    File(File, u64),
    /// Standard input or a pipe.
    Stream(Box<dyn Read>),
}

/// Opens a file, or standard input.
///
/// # Errors
///
/// Returns an error if the file cannot be opened or is not a regular file.
pub fn open(file: Option<&Path>) -> io::Result<Source> {
    let Some(path) = file.filter(|path| *path != Path::new("-")) else {
        if io::stdin().is_terminal() {
            say("reading standard input; give a file to read that");
        }
        let (input, bar) = (Input::Stream(Box::new(io::stdin().lock())), ProgressBar::hidden());
        return Ok(Source { input, bar, writer: None, is_virtual: false });
    };
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))
    };
    let mut file = File::open(path).map_err(named)?;
    let about = file.metadata().map_err(named)?;
    if about.is_dir() {
        return Err(named(io::Error::other("it is a directory, expected the file of a trace")));
    }
    let writer = if about.is_file() { writer(&about) } else { None };
    let length = match writer {
        Some(_) => whole_lines(&mut file, about.len()).map_err(named)?,
        None => about.len(),
    };
    // A pipe cannot be read twice, and has no known writer.
    let is_virtual = writer.is_some() && is_virtual(&mut file).map_err(named)?;
    let bar = match about.len() > LARGE && io::stderr().is_terminal() {
        true => ProgressBar::new(about.len()),
        false => ProgressBar::hidden(),
    };
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {eta}");
    bar.set_style(style.expect("the template is right"));
    let input = match about.is_file() {
        true => Input::File(file, length),
        false => Input::Stream(Box::new(file)),
    };
    Ok(Source { input, bar, writer, is_virtual })
}

/// Writes a message to standard error. A closed standard error is not an error.
pub fn say(what: impl Display) {
    drop(writeln!(io::stderr(), "trace: {what}"));
}

/// The facts that are known after all lines were read.
pub struct Over {
    /// The header of the trace.
    pub header: Option<String>,
    /// The number of lines.
    pub count: u64,
    /// Whether the log is complete.
    pub is_whole: bool,
    /// Whether `select` has written the log.
    pub is_selection: bool,
    /// The process that is writing the log.
    pub writer: Option<Writer>,
    /// The same, if time passes after the last line.
    pub goes_on: Option<Writer>,
}

impl Source {
    /// Returns the process that is writing the log, if time passes in the log by itself.
    pub fn goes_on(&self) -> Option<Writer> {
        self.writer.filter(|_| !self.is_virtual)
    }

    /// Reads the input line by line, keeps no line, and reports the faults of the log. `remark` gets
    /// the header too.
    ///
    /// # Errors
    ///
    /// Returns an error if the input fails or has no line of a trace.
    pub fn lines(
        self,
        mut line: impl FnMut(&Line<'_>),
        mut remark: impl FnMut(&str),
    ) -> io::Result<Over> {
        let goes_on = self.goes_on();
        let (mut whole, mut count, mut bar) = (Whole::default(), 0, Progress(self.bar, 0));
        let input: Box<dyn Read> = match self.input {
            Input::File(file, length) => Box::new(file.take(length)),
            Input::Stream(stream) => stream,
        };
        let input = BufReader::with_capacity(1 << 16, input);
        let header = read_lines(input, |read| match read {
            Each::Line(each, origin) => {
                count += 1;
                bar.add(origin.size);
                whole.line(&each, origin.number);
                line(&each);
            }
            Each::Header(text) => remark(text),
            Each::Remark(text) => {
                whole.remark(text);
                remark(text);
            }
            Each::Bad(bad) => whole.bad(&bad),
        })?;
        bar.0.finish_and_clear();
        let is_whole = report(&mut whole, self.writer);
        if count == 0 {
            return Err(no_line());
        }
        let goes_on = goes_on.filter(|_| !whole.is_halted());
        let is_selection = whole.is_selection();
        Ok(Over { header, count, is_whole, is_selection, writer: self.writer, goes_on })
    }

    /// Reads it whole.
    ///
    /// # Errors
    ///
    /// As [`Source::lines`].
    pub fn whole(self) -> io::Result<Trace> {
        let mut bar = Progress(self.bar, 0);
        let seen = |size| bar.add(size);
        let mut trace = match self.input {
            Input::File(file, length) => Trace::read(Start { file, length }, seen)?,
            Input::Stream(mut stream) => {
                let mut text = Vec::new();
                stream.read_to_end(&mut text)?;
                Trace::read(text, seen)?
            }
        };
        bar.0.finish_and_clear();
        report(&mut trace.whole, self.writer);
        if trace.is_empty() { Err(no_line()) } else { Ok(trace) }
    }
}

/// The first bytes of a file. What is written after them does not count.
#[derive(Debug)]
struct Start {
    file: File,
    length: u64,
}

impl Text for Start {
    fn length(&self) -> u64 {
        self.length
    }

    fn read_at(&self, bytes: &mut [u8], from: u64) -> io::Result<usize> {
        (&self.file).seek(SeekFrom::Start(from))?;
        (&self.file).read(bytes)
    }

    fn changed(&self, what: &dyn Display) -> ! {
        say(format_args!("the log has changed while it was read: {what}"));
        process::exit(2)
    }
}

/// Reports the faults of a log. Returns whether it has none.
fn report(whole: &mut Whole, writer: Option<Writer>) -> bool {
    if writer.is_some() {
        whole.grows();
    }
    let faults = whole.faults();
    faults.iter().for_each(say);
    faults.is_empty()
}

/// A bar, and how many bytes it does not show yet.
struct Progress(ProgressBar, u64);

impl Progress {
    fn add(&mut self, size: usize) {
        self.1 += size as u64;
        if self.1 > 1 << 20 {
            self.0.inc(std::mem::take(&mut self.1));
        }
    }
}

fn no_line() -> io::Error {
    let what = "there is no line of a trace in it; record one with `--trace FILE`";
    io::Error::new(ErrorKind::InvalidData, what)
}
