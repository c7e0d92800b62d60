//! What the tool reads: a file or standard input, with a bar where that takes long.

use std::fmt::Display;
use std::fs::File;
use std::io::{self, BufRead, BufReader, ErrorKind, IsTerminal, Read as _, Write};
use std::path::Path;

use indicatif::{ProgressBar, ProgressStyle};
use testing::trace::Line;

use super::tool::look::{Writer, is_virtual, whole_lines};
use super::tool::model::{Bad, Read, Trace, read_lines};

/// A file of more than this gets a progress bar.
const LARGE: u64 = 50_000_000;

/// What is read.
pub struct Source {
    input: Box<dyn BufRead>,
    /// How far it is read.
    bar: ProgressBar,
    /// Who is writing it, if time goes on in it.
    pub writer: Option<Writer>,
}

/// Opens a file, or standard input.
///
/// # Errors
///
/// It cannot be opened, or is no file.
pub fn open(file: Option<&Path>) -> io::Result<Source> {
    let Some(path) = file.filter(|path| *path != Path::new("-")) else {
        if io::stdin().is_terminal() {
            say("reading standard input; give a file to read that");
        }
        let (input, bar) = (Box::new(io::stdin().lock()), ProgressBar::hidden());
        return Ok(Source { input, bar, writer: None });
    };
    let named = |error: io::Error| {
        io::Error::new(error.kind(), format!("cannot read {}: {error}", path.display()))
    };
    let mut file = File::open(path).map_err(named)?;
    let about = file.metadata().map_err(named)?;
    if about.is_dir() {
        return Err(named(io::Error::other("it is a directory, expected the file of a trace")));
    }
    let writer = if about.is_file() { Writer::of(&about) } else { None };
    let length = match writer {
        Some(_) => whole_lines(&mut file, about.len()).map_err(named)?,
        None => u64::MAX,
    };
    // A pipe cannot be read twice, and has no known writer.
    let goes_on = writer.is_some() && !is_virtual(&mut file).map_err(named)?;
    let bar = match about.len() > LARGE && io::stderr().is_terminal() {
        true => ProgressBar::new(about.len()),
        false => ProgressBar::hidden(),
    };
    let style = ProgressStyle::with_template("{bar:40} {bytes}/{total_bytes} {eta}");
    bar.set_style(style.expect("the template is right"));
    let input = Box::new(BufReader::with_capacity(1 << 16, file.take(length)));
    Ok(Source { input, bar, writer: writer.filter(|_| goes_on) })
}

/// Says something on standard error. A closed one is no error.
pub fn say(what: impl Display) {
    drop(writeln!(io::stderr(), "trace: {what}"));
}

/// So many wrong lines are reported one by one.
const SHOWN: usize = 10;

/// The wrong lines: the first of them, and how many they are.
#[derive(Default)]
pub struct Wrong {
    first: Vec<Bad>,
    count: usize,
}

impl Wrong {
    fn add(&mut self, bad: Bad) {
        self.count += 1;
        if self.count <= SHOWN {
            self.first.push(bad);
        }
    }

    fn report(&self) {
        self.first.iter().for_each(say);
        if self.count > SHOWN {
            say(format_args!("and {} more lines that cannot be read", self.count - SHOWN));
        }
    }
}

/// What is known when all lines were read.
pub struct Over {
    /// The header of the trace.
    pub header: Option<String>,
    /// How many lines there were.
    pub count: u64,
    /// Some could not be read.
    pub has_bad: bool,
}

impl Source {
    /// Reads it line by line, keeps none, and reports those that cannot be read.
    ///
    /// # Errors
    ///
    /// Those of the input; no line is one of a trace.
    pub fn lines(
        self,
        mut line: impl FnMut(&Line<'_>),
        mut remark: impl FnMut(&str),
    ) -> io::Result<Over> {
        let (mut wrong, mut count, mut bar) = (Wrong::default(), 0, Progress(self.bar, 0));
        let header = read_lines(self.input, |read| match read {
            Read::Line(each, size) => {
                count += 1;
                bar.add(size);
                line(&each);
            }
            Read::Remark(text) => remark(text),
            Read::Bad(bad) => wrong.add(bad),
        })?;
        bar.0.finish_and_clear();
        wrong.report();
        if count == 0 {
            return Err(no_line());
        }
        Ok(Over { header, count, has_bad: wrong.count > 0 })
    }

    /// Reads it whole.
    ///
    /// # Errors
    ///
    /// As [`Source::lines`].
    pub fn whole(self) -> io::Result<Trace> {
        let mut bar = Progress(self.bar, 0);
        let mut trace = Trace::read(self.input, |size| bar.add(size))?;
        bar.0.finish_and_clear();
        let mut wrong = Wrong::default();
        trace.bad.drain(..).for_each(|bad| wrong.add(bad));
        wrong.report();
        if trace.lines.is_empty() { Err(no_line()) } else { Ok(trace) }
    }
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
