//! The input of the tool: a file or standard input, with a progress bar if reading takes longer
//! than a second.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufReader, ErrorKind, IsTerminal, Read, Seek as _, SeekFrom, Write};
use std::path::Path;
use std::process;
use std::time::{Duration, Instant};

use indicatif::{ProgressBar, ProgressStyle};
use testing::trace::{Flight, Line};

use trace_tool::look::Writer;
use trace_tool::model::{Text, Trace};
use trace_tool::reading::{Read as Each, read_lines};
use trace_tool::whole::Whole;

use crate::file::{is_virtual, whole_lines, writer};

/// How long reading takes before it shows its progress. A size would be a guess: a disk, a pipe and
/// a debug build differ by more than ten times.
const PATIENCE: Duration = Duration::from_secs(1);

/// The input.
pub struct Source {
    input: Input,
    progress: Progress,
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
        let input = Input::Stream(Box::new(io::stdin().lock()));
        let progress = Progress::of(None);
        return Ok(Source { input, progress, writer: None, is_virtual: false });
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
    let progress = Progress::of(Some(length).filter(|_| about.is_file()));
    let input = match about.is_file() {
        true => Input::File(file, length),
        false => Input::Stream(Box::new(file)),
    };
    Ok(Source { input, progress, writer, is_virtual })
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
    /// If the log is a dump, its remark, and the number of lines in its head.
    pub dump: Option<(Flight, u64)>,
    /// Whether the log is complete.
    pub is_whole: bool,
    /// Whether `select` has written the log.
    pub is_selection: bool,
    /// The process that is writing the log.
    pub writer: Option<Writer>,
    /// That process, if time passes after the last line.
    pub goes_on: Option<Writer>,
}

impl Source {
    /// Shows no progress, because the output is on the same terminal.
    pub fn in_silence(mut self) -> Source {
        self.progress.is_hidden = true;
        self
    }

    /// Returns the process that is writing the log, if time passes in the log by itself.
    pub fn goes_on(&self) -> Option<Writer> {
        self.writer.filter(|_| !self.is_virtual)
    }

    /// Reads the input line by line, keeps no line, and reports the faults of the log. `line` and
    /// `remark`, which gets the header too, change `reader`.
    ///
    /// # Errors
    ///
    /// Returns an error if the input fails or has no line of a trace.
    pub fn lines<R>(
        self,
        reader: &mut R,
        mut line: impl FnMut(&mut R, &Line<'_>),
        mut remark: impl FnMut(&mut R, &str),
    ) -> io::Result<Over> {
        let goes_on = self.goes_on();
        let (mut whole, mut progress) = (Whole::default(), self.progress);
        let (mut count, mut head) = (0, 0);
        let input: Box<dyn Read> = match self.input {
            Input::File(file, length) => Box::new(file.take(length)),
            Input::Stream(stream) => stream,
        };
        let input = BufReader::with_capacity(1 << 16, input);
        let header = read_lines(input, |read| match read {
            Each::Line(each, origin) => {
                count += 1;
                progress.add(origin.size);
                whole.line(&each, origin.number);
                head += u64::from(whole.flight().is_some_and(|it| each.seq < it.from));
                line(reader, &each);
            }
            Each::Header(text) => remark(reader, text),
            Each::Remark(text) => {
                whole.remark(text);
                remark(reader, text);
            }
            Each::Bad(bad) => whole.bad(&bad),
        })?;
        progress.end();
        let is_whole = report(&mut whole, self.writer);
        if count == 0 {
            return Err(no_line());
        }
        let goes_on = goes_on.filter(|_| !whole.is_halted());
        let is_selection = whole.is_selection();
        let dump = whole.flight().map(|flight| (flight, head));
        Ok(Over { header, count, dump, is_whole, is_selection, writer: self.writer, goes_on })
    }

    /// Reads it whole.
    ///
    /// # Errors
    ///
    /// As [`Source::lines`].
    pub fn whole(self) -> io::Result<Trace> {
        let mut progress = self.progress;
        let mut trace = match self.input {
            Input::File(file, length) => {
                Trace::read(Start { file, length }, |size| progress.add(size))?
            }
            Input::Stream(stream) => {
                let mut text = Vec::new();
                Counted(stream, &mut progress).read_to_end(&mut text)?;
                progress.is_of(text.len() as u64);
                Trace::read(text, |size| progress.add(size))?
            }
        };
        progress.end();
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

/// The progress of reading, which is shown on a terminal once it takes longer than [`PATIENCE`].
struct Progress {
    since: Instant,
    /// The number of bytes, if it is known.
    total: Option<u64>,
    done: u64,
    bar: Option<ProgressBar>,
    is_hidden: bool,
}

impl Progress {
    fn of(total: Option<u64>) -> Progress {
        let is_hidden = !io::stderr().is_terminal();
        Progress { since: Instant::now(), total, done: 0, bar: None, is_hidden }
    }

    /// Counts bytes. Looks at the clock once for each MiB.
    fn add(&mut self, size: usize) {
        const STEP: u64 = 20;
        let before = self.done >> STEP;
        self.done += size as u64;
        if self.done >> STEP == before || self.is_hidden || self.since.elapsed() < PATIENCE {
            return;
        }
        let bar = self.bar.get_or_insert_with(|| {
            let (bar, shown) = match self.total {
                Some(total) => (ProgressBar::new(total), "{bar:40} {bytes}/{total_bytes} {eta}"),
                None => (ProgressBar::no_length(), "{bytes} in {elapsed}"),
            };
            bar.with_style(ProgressStyle::with_template(shown).expect("the template is right"))
                .with_elapsed(self.since.elapsed())
        });
        bar.set_position(self.done);
    }

    /// Begins again with a known number of bytes.
    fn is_of(&mut self, total: u64) {
        self.end();
        (self.total, self.done) = (Some(total), 0);
    }

    /// Removes the bar.
    fn end(&mut self) {
        if let Some(bar) = self.bar.take() {
            bar.finish_and_clear();
        }
    }
}

/// A reader that counts its bytes.
struct Counted<'p, R>(R, &'p mut Progress);

impl<R: Read> Read for Counted<'_, R> {
    fn read(&mut self, bytes: &mut [u8]) -> io::Result<usize> {
        let size = self.0.read(bytes)?;
        self.1.add(size);
        Ok(size)
    }
}

fn no_line() -> io::Error {
    let what = "there is no line of a trace in it; record one with `--trace FILE`";
    io::Error::new(ErrorKind::InvalidData, what)
}
