//! The files of a directory as responses. They are opened without leaving the directory, and sent
//! or read piece by piece on worker threads.
//!
//! The module `conditions` decides which part of a file to send. This module must not read a file
//! on the kernel's thread.

use std::fmt;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::{AsFd, BorrowedFd, OwnedFd};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;
use percent_encoding::percent_decode_str;
use rustix::fs::{CWD, FileType, Mode, OFlags, fstat, openat};
use rustix::io::{Errno, pread};
use traps::internal::tape::{Answer, Words};
use traps::threads::Limiter;
use traps::{Time, wall_clock};

use super::conditions::{FileState, Verdict, judge};
use crate::http::guard::memory::Growing;
use crate::http::{Request, Response};
use crate::limits::{FILE_JOB, FILE_PIECE, LARGEST_FILE_PIECE, READ_BUFFER};
use crate::record::{self, Handle, Recorded};
use crate::resolve::failed;
use crate::socket::send_file;
use crate::stream::Stream;
use crate::system::THROUGH;
use crate::throttle::Warnings;

const NO_FILE: &str = "there is no such file\n";

/// The files below a directory, for responses.
///
/// A name can only lead to a regular file below the directory. `..`, symbolic links, and names that
/// begin with a dot are not followed. This holds even if the directory changes in the meantime,
/// because each step is opened from the one before. Responses have the fields `ETag` and
/// `Last-Modified`. Conditions (such as `If-Match`) and a single range of bytes are supported. The
/// `ETag` depends only on the length of the file and the time of its last change, so copies on
/// several hosts can have the same tag. A change that keeps both is not noticed; two changes within
/// a few milliseconds may have the same time.
///
/// Opening the file is a job on a worker thread within the [`Limiter`], and so is reading each
/// piece. While a client receives a piece, its download uses no thread. It keeps at most one piece
/// in memory, or 16 KiB and one piece if pieces are small. A piece of more than 16 KiB counts for
/// [`Limits::memory`](crate::http::Limits::memory), and a download waits for room like a body. The
/// file is closed when its response ends, for whatever reason.
///
/// If the stream is a socket ([`Stream::file_sender`]), the system sends a file of more than 16 KiB
/// without a copy (sendfile(2)), in jobs that end when the socket is full. Then a piece of 16 KiB
/// is read, and waits for the client. So the download of a client that does not read keeps 32 KiB.
///
/// ```
/// use std::io;
/// use net::Stream;
/// use net::http::{Handler, Request, Response};
/// use net::web::{Files, Router};
///
/// struct App {
///     /// `Router::new().get("/files/{*name}", ())`
///     routes: Router<()>,
///     files: Files,
/// }
///
/// impl Handler for App {
///     async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
///         if let Err(response) = self.routes.find(request) {
///             return Ok(response);
///         }
///         let name = request.raw_param("name").unwrap_or_default().to_owned();
///         self.files.respond(request, &name).await
///     }
/// }
/// ```
pub struct Files {
    directory: Arc<Handle>,
    limiter: Limiter,
    /// The number of bytes that are read at a time, at first.
    piece: usize,
    /// The number of bytes that are read at a time if the client takes each piece at once.
    largest: usize,
    warnings: Warnings,
}

/// The facts about a file that its response depends on.
struct Facts {
    len: u64,
    /// The time of the last change, in seconds, and the nanoseconds beyond them.
    changed: i64,
    nanos: u64,
}

impl Recorded for Facts {
    fn put(&self, words: &mut Words) {
        words.word(&format!("{} {} {}", self.len, self.changed, self.nanos));
    }
    fn get(answer: &mut Answer<'_>) -> Facts {
        Facts { len: answer.number(), changed: answer.parsed(), nanos: answer.number() }
    }
}

impl Files {
    /// Opens `directory`, whose files can then be sent.
    ///
    /// # Errors
    ///
    /// Returns the system's error with the name of the directory, if it does not exist or is not a
    /// directory.
    pub fn open(directory: &Path, limiter: Limiter) -> io::Result<Files> {
        let flags = THROUGH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let open = || Ok(openat(CWD, directory, flags, Mode::empty())?.into());
        let opened = record::call("directory", open);
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", directory.display()))
        };
        let directory = Arc::new(opened.map_err(named)?);
        let (piece, largest, warnings) = (FILE_PIECE, LARGEST_FILE_PIECE, Warnings::default());
        Ok(Files { directory, limiter, piece, largest, warnings })
    }

    /// Sets the number of bytes that are read at a time, at least one. The default is 128 KiB, and
    /// up to 1 MiB for a client that takes each piece at once, if there is room in memory. A client
    /// that takes no bytes keeps one piece in memory, or as many pieces of less than 16 KiB as fill
    /// 16 KiB. If the system sends the file, it is read only in pieces of 16 KiB at most.
    #[must_use]
    pub fn piece(mut self, bytes: usize) -> Files {
        self.piece = bytes.max(1);
        self.largest = self.piece;
        self
    }

    /// Responds to a GET or a HEAD with the file of this name. The name is percent-decoded here, so
    /// it is the [`raw_param`](crate::http::RequestHead::raw_param) of a route.
    ///
    /// The status is 404 if the file does not exist or the process has no permission to read it,
    /// and 503 if descriptors or memory have run out. The client's conditions and range can lead to
    /// 304, 412, 416 or 206. If the permission is missing or a resource has run out, the log has a
    /// `warn` line with the name, the peer and the reason, at most one a second. Blocks until a
    /// thread is free, and then like [`BodyWriter::write`](crate::http::BodyWriter::write).
    ///
    /// # Errors
    ///
    /// Returns the errors of [`BodyWriter::write`](crate::http::BodyWriter::write), and those of
    /// opening and reading the file, with its name and the peer. It is also an error if the file
    /// has become shorter. In these cases the response breaks off, and the log has a line for the
    /// failed handler.
    ///
    /// # Panics
    ///
    /// Panics if a response has already begun.
    pub async fn respond<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
        name: &str,
    ) -> io::Result<Response> {
        let page = request.error_page();
        let nothing = || page(404, NO_FILE);
        let Some(steps) = steps(name) else { return Ok(nothing()) };
        let kind = kind(&String::from_utf8_lossy(steps.last().map_or(&[], Vec::as_slice)));
        let directory = self.directory.clone();
        let opened = self.limiter.run_in_thread(move || find(&directory, &steps)).await?;
        let (file, metadata) = match record::call("file", || opened) {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(nothing()),
            Err(error) => return self.refuse(request, name, error),
        };
        let state = state(&metadata, wall_clock());
        let fields = |name: &str| request.headers(name).collect();
        let (status, part) = match judge(&state, request.is_head(), fields) {
            Verdict::Whole => (200, 0..state.len),
            Verdict::Part(part) => (206, part),
            Verdict::NotModified => return told(Response::new(304), &state),
            Verdict::Failed => return Ok(page(412, "the file is in another state\n")),
            Verdict::NoSuchPart => {
                let response = page(416, "the file has no such part\n");
                return Ok(response.header("Content-Range", format!("bytes */{}", state.len))?);
            }
        };
        let mut response = told(Response::new(status), &state)?
            .header("Content-Type", kind)?
            .header("Accept-Ranges", "bytes")?
            .header("X-Content-Type-Options", "nosniff")?
            .with_length(part.end - part.start);
        if status == 206 {
            let Range { start, end } = part;
            let range = format!("bytes {start}-{}/{}", end - 1, state.len);
            response = response.header("Content-Range", range)?;
        }
        self.send(request, response, (name, file), part).await
    }

    /// Returns the response for a file that could not be opened, or the error if no response fits.
    /// If the handler fails, the server logs the error; if this function returns a response, it
    /// logs the error itself.
    fn refuse<S: Stream>(
        &self,
        request: &Request<'_, S>,
        name: &str,
        error: io::Error,
    ) -> io::Result<Response> {
        let page = request.error_page();
        let response = match Errno::from_io_error(&error) {
            Some(Errno::ACCESS | Errno::PERM) => Some(page(404, NO_FILE)),
            _ if is_shortage(&error) => Some(page(503, "too busy, ask again later\n").ask_again()),
            _ => None,
        };
        let error = failed(format!("open {name}{}", whom(request)), error);
        let Some(response) = response else { return Err(error) };
        // Clients can cause it at will.
        self.warnings.warn(error, request.now());
        Ok(response)
    }

    async fn send<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
        response: Response,
        (name, file): (&str, Handle),
        part: Range<u64>,
    ) -> io::Result<Response> {
        let left = if request.is_head() { 0..0 } else { part };
        let mut download = Download { file, left, size: self.piece, buffer: Growing::default() };
        // To read a short file takes fewer system calls.
        let mut by_system = download.next(usize::MAX) > READ_BUFFER && request.sends_files();
        if by_system {
            download.size = READ_BUFFER.min(self.piece);
        }
        request.hold_buffer(download.next(download.size)).await?;
        let mut answer = request.start(response).await?;
        while !download.left.is_empty() {
            let read;
            if by_system {
                let most = download.next(FILE_JOB);
                let part = (download.left.start, most);
                let job = async |socket| {
                    let send = move || download.send(&socket, most);
                    let (download, read, sent) = self.limiter.run_in_thread(send).await?;
                    Ok(((download, read), sent))
                };
                let sent;
                ((download, read), sent) = answer.request().writer.send_file(part, job).await?;
                by_system = sent.is_ok();
                download.left.start += sent.as_ref().map_or(0, |n| *n as u64);
                if !by_system {
                    // The file or the connection is at fault. To read and write shows which.
                    download.size = self.piece;
                    answer.request().hold_buffer(download.next(self.piece)).await?;
                }
                if !sent.is_ok_and(|n| n < most) {
                    continue;
                }
            } else {
                (download, read) = self.limiter.run_in_thread(move || download.read()).await?;
            }
            let n = download
                .has_read(read)
                .map_err(|error| failed(format!("send {name}{}", whom(answer.request())), error))?;
            let begun = answer.request().now();
            answer.write(&download.buffer.0[..n]).await?;
            download.left.start += n as u64;
            if !by_system {
                self.adapt(answer.request(), &mut download, begun);
            }
        }
        answer.finish()
    }

    /// Lets the pieces grow if the client has taken the last one at once, since `begun`. Otherwise
    /// returns to the size of the first one.
    fn adapt<S: Stream>(&self, request: &mut Request<'_, S>, download: &mut Download, begun: Time) {
        let Download { left, size, buffer, .. } = download;
        if request.now() > begun {
            request.shrink_buffer(*size - self.piece);
            (*size, *buffer) = (self.piece, Growing::default());
        } else if !left.is_empty() && *size * 2 <= self.largest && request.grow_buffer(*size) {
            *size *= 2;
        }
    }
}

/// The part of a file that is left to send. A job on a worker thread gets it and returns it.
struct Download {
    file: Handle,
    left: Range<u64>,
    /// The number of bytes that are read at a time.
    size: usize,
    buffer: Growing,
}

impl Download {
    /// The number of bytes that are left, but `most` at most.
    fn next(&self, most: usize) -> usize {
        let left = self.left.end - self.left.start;
        usize::try_from(left).map_or(most, |left| left.min(most))
    }

    /// Reads the next piece. Returns the number of its bytes.
    fn read(mut self) -> (Download, io::Result<usize>) {
        let size = self.next(self.size);
        self.buffer.0.resize(size, 0);
        let read = self.file.get().and_then(|it| pread(it, &mut self.buffer.0, self.left.start));
        (self, read.map_err(io::Error::from))
    }

    /// Sends at most `most` bytes to a socket. If it has no room for more, reads the next piece.
    /// Returns the number of bytes in the piece, and the number of bytes sent.
    fn send(
        mut self,
        socket: &Handle<'c'>,
        most: usize,
    ) -> (Download, io::Result<usize>, io::Result<usize>) {
        let begin = self.left.start;
        let sent = send_file(socket, &self.file, begin, most);
        let Some(n) = sent.as_ref().ok().filter(|n| **n < most) else { return (self, Ok(0), sent) };
        self.left.start += *n as u64;
        let (mut back, read) = self.read();
        back.left.start = begin;
        (back, read, sent)
    }

    /// Takes the result of a read, and returns the number of bytes: zero if a signal came first.
    fn has_read(&mut self, read: io::Result<usize>) -> io::Result<usize> {
        // In a replay the job has read nothing.
        self.buffer.0.resize(self.next(self.size), 0);
        match record::read(&mut self.buffer.0, |_| Some(read)).unwrap_or(Ok(0)) {
            Err(error) if error.kind() == ErrorKind::Interrupted => Ok(0),
            Ok(0) => Err(io::Error::new(ErrorKind::UnexpectedEof, "it became shorter")),
            read => read,
        }
    }
}

impl fmt::Debug for Files {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Files")
            .field("limiter", &self.limiter)
            .field("piece", &self.piece)
            .finish_non_exhaustive()
    }
}

/// Splits the name of a file into its decoded steps. Returns `None` if a step is malformed or not
/// allowed.
fn steps(name: &str) -> Option<Vec<Vec<u8>>> {
    name.split('/').map(step).collect()
}

fn step(text: &str) -> Option<Vec<u8>> {
    let step: Vec<u8> = percent_decode_str(text).collect();
    // In a well-formed text, each percent sign marks three bytes that became one.
    let signs = text.bytes().filter(|byte| *byte == b'%').count();
    let is_decoded = step.len() + 2 * signs == text.len();
    // Refuse empty steps, and steps that begin with a dot. These include `.` and `..`, which lead
    // elsewhere.
    let is_name = is_decoded && !matches!(step.first(), None | Some(b'.'));
    (is_name && !step.iter().any(|byte| matches!(byte, 0 | b'/'))).then_some(step)
}

/// Opens a regular file, step by step. Returns `None` if there is no such file.
fn find(directory: &Handle, steps: &[Vec<u8>]) -> io::Result<Option<(Handle, Facts)>> {
    let opened = match directory.get().and_then(|directory| open(directory, steps)) {
        Ok(opened) => opened,
        Err(
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::ISDIR
            | Errno::LOOP
            | Errno::NAMETOOLONG
            | Errno::INVAL
            | Errno::ILSEQ
            // A socket, or a device without its driver.
            | Errno::NXIO
            | Errno::NODEV,
        ) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let found = fstat(&opened)?;
    let facts = Facts {
        len: u64::try_from(found.st_size).unwrap_or(0),
        changed: found.st_mtime as i64,
        nanos: found.st_mtime_nsec as u64,
    };
    let is_file = FileType::from_raw_mode(found.st_mode) == FileType::RegularFile;
    Ok(is_file.then(|| (opened.into(), facts)))
}

/// Returns the words for the log that name the client of a request.
fn whom<S: Stream>(request: &Request<'_, S>) -> String {
    request.peer().map(|peer| format!(" for {peer}")).unwrap_or_default()
}

/// Returns whether an open failed because a resource has run out, and not because of the file.
fn is_shortage(error: &io::Error) -> bool {
    let short = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
    error.raw_os_error().is_some_and(|code| short.iter().any(|e| e.raw_os_error() == code))
}

fn open(directory: BorrowedFd<'_>, steps: &[Vec<u8>]) -> Result<OwnedFd, Errno> {
    let (last, before) = steps.split_last().expect("a name has a step");
    let through = THROUGH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here: Option<OwnedFd> = None;
    for step in before {
        let from = here.as_ref().map_or(directory, AsFd::as_fd);
        let next = openat(from, step.as_slice(), through, Mode::empty())?;
        here = Some(next);
    }
    // `NONBLOCK`, because opening a pipe must not block the thread.
    let found = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let found = found | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let from = here.as_ref().map_or(directory, AsFd::as_fd);
    openat(from, last.as_slice(), found, Mode::empty())
}

/// Makes the state of a file. The tag consists only of the length and the time of the last change.
/// So a copy on another host that has kept the time has the same tag.
fn state(facts: &Facts, now: SystemTime) -> FileState {
    let Facts { len, changed, nanos } = *facts;
    let tag = format!("\"{len:x}-{changed:x}.{nanos:x}\"");
    let now = now.duration_since(UNIX_EPOCH).as_ref().map_or(0, Duration::as_secs);
    // The time must not be later than the response itself.
    let modified = u64::try_from(changed).unwrap_or(0).min(now);
    FileState { len, tag, modified }
}

/// Adds the fields that describe the file to the response.
fn told(response: Response, state: &FileState) -> io::Result<Response> {
    let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(state.modified)).to_string();
    Ok(response.header("ETag", &state.tag)?.header("Last-Modified", date)?)
}

/// Returns the media type for the extension of a name.
fn kind(name: &str) -> String {
    let kind = mime_guess::from_path(name).first_or_octet_stream();
    let is_text = kind.type_() == mime_guess::mime::TEXT;
    format!("{kind}{}", if is_text { "; charset=utf-8" } else { "" })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_shortage_is_told_from_a_fault() {
        assert!(is_shortage(&Errno::MFILE.into()) && is_shortage(&Errno::NOMEM.into()));
        assert!(!is_shortage(&Errno::IO.into()) && !is_shortage(&io::Error::other("x")));
    }

    #[test]
    fn a_name_has_steps_that_go_down_and_nothing_else() {
        let words = |name| steps(name).map(|steps| steps.join(&b'|'));
        assert_eq!(words("a/b%20c/d%2e").as_deref(), Some(&b"a|b c|d."[..]));
        assert_eq!(words("caf%C3%A9").as_deref(), Some("caf\u{e9}".as_bytes()));
        for name in [
            "",
            "/",
            "a/",
            "/a",
            "a//b",
            ".",
            "..",
            "../a",
            "a/../b",
            "a/..",
            "%2e%2e/a",
            ".%2e",
            ".git",
            "a%2fb",
            "a/%2e%2e%2fb",
            "a%00",
            "%",
            "%2",
            "%zz",
            "a/%2",
        ] {
            assert_eq!(words(name), None, "{name}");
        }
        // On Linux a backslash is an ordinary character of a name.
        assert_eq!(words("..\\a"), None);
        assert_eq!(words("a\\..").as_deref(), Some(&b"a\\.."[..]));
    }
}
