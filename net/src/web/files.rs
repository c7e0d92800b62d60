//! Files of a directory as answers: found without leaving it, read a piece at a time on threads.
//!
//! What of a file is sent is the matter of `conditions`. It may not read on the kernel's thread.

use std::fmt;
use std::fs::{File, Metadata};
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::os::fd::{AsFd, OwnedFd};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use httpdate::HttpDate;
use rustix::fs::{CWD, Mode, OFlags, openat};
use rustix::io::Errno;
use traps::threads::Limiter;
use traps::wall_clock;

use super::conditions::{State, Verdict, judge};
use super::router::hex;
use crate::http::{Request, Response};
use crate::limits::FILE_PIECE;
use crate::stream::Stream;

/// The files below a directory, to be sent.
///
/// A name leads to a regular file below the directory or to nothing: `..`, symbolic links, and
/// names that begin with a dot are not followed, whatever happens to the directory meanwhile, since
/// each step is opened from the one before. Answers have an `ETag` and `Last-Modified`; conditions
/// (`If-Match` and kin) and a single range of bytes are heeded. The `ETag` is the same on every
/// host that has the file with the same length and the same time of its last change. A change that
/// keeps both is not noticed; two changes within a few milliseconds may have the same time.
///
/// Opening and each piece are a job on a worker thread behind the [`Limiter`]; while a client takes
/// a piece its download holds no thread, and of the file a piece at most in memory, or
/// 16 KiB and a piece of small ones.
/// The file is closed when its answer ends, however it ends.
///
/// ```
/// use std::io;
/// use net::Stream;
/// use net::http::{Handler, Request, Response};
/// use net::web::{Files, Router};
///
/// struct App {
///     routes: Router<()>,
///     files: Files,
/// }
///
/// impl Handler for App {
///     async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
///         let found = match self.routes.find(request) {
///             Ok(found) => found,
///             Err(answer) => return Ok(answer),
///         };
///         let name = found.rest(request).to_owned();
///         self.files.answer(request, &name).await
///     }
/// }
/// ```
pub struct Files {
    directory: Arc<OwnedFd>,
    limiter: Limiter,
    piece: usize,
}

impl Files {
    /// The files below `directory`, which is opened now.
    ///
    /// # Errors
    ///
    /// The system's, with the directory's name: it is not there, or is none.
    pub fn open(directory: &Path, limiter: Limiter) -> io::Result<Files> {
        let flags = OFlags::PATH | OFlags::DIRECTORY | OFlags::CLOEXEC;
        let opened = openat(CWD, directory, flags, Mode::empty()).map_err(io::Error::from);
        let named = |error: io::Error| {
            io::Error::new(error.kind(), format!("{}: {error}", directory.display()))
        };
        let directory = Arc::new(opened.map_err(named)?);
        Ok(Files { directory, limiter, piece: FILE_PIECE })
    }

    /// Sets how many bytes are read at a time, at least one. 128 KiB unless set: a
    /// client that takes nothing keeps that much, of less than 16 KiB as many as fill them.
    #[must_use]
    pub fn piece(mut self, bytes: usize) -> Files {
        self.piece = bytes.max(1);
        self
    }

    /// Answers a GET or a HEAD with the file of that name, whose percent signs are decoded here.
    ///
    /// 404 where there is none; 503 where descriptors or memory run out; 304, 412, 416, 206 as the
    /// client's conditions and range have it.
    /// Blocks for a thread, and then as [`Answer::write`](crate::http::Answer::write).
    ///
    /// # Errors
    ///
    /// As for [`Answer::write`](crate::http::Answer::write); those of reading the file, also that
    /// it became shorter: then the answer breaks off.
    ///
    /// # Panics
    ///
    /// If an answer has begun already.
    pub async fn answer<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
        name: &str,
    ) -> io::Result<Response> {
        let page = request.error_page();
        let nothing = || page(404, "there is no such file\n");
        let Some(steps) = steps(name) else { return Ok(nothing()) };
        let kind = steps.last().map_or("", |last| kind(&String::from_utf8_lossy(last)));
        let directory = self.directory.clone();
        let opened = self.limiter.run_in_thread(move || find(&directory, &steps)).await?;
        let (file, metadata) = match opened {
            Ok(Some(found)) => found,
            Ok(None) => return Ok(nothing()),
            Err(error) if is_shortage(&error) => {
                return Ok(page(503, "too busy, ask again later\n").ask_again());
            }
            Err(error) => return Err(error),
        };
        let state = state(&metadata, wall_clock());
        let fields = |name: &str| request.headers(name).collect();
        let (status, part) = match judge(&state, request.is_head(), fields) {
            Verdict::Whole => (200, 0..state.len),
            Verdict::Part(part) => (206, part),
            Verdict::NotModified => return told(Response::new(304), &state),
            Verdict::Failed => return Ok(page(412, "the file is in another state\n")),
            Verdict::NoSuchPart => {
                let answer = page(416, "the file has no such part\n");
                return Ok(answer.header("Content-Range", format!("bytes */{}", state.len))?);
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
        self.send(request, response, file, part).await
    }

    async fn send<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
        response: Response,
        file: File,
        part: Range<u64>,
    ) -> io::Result<Response> {
        let part = if request.is_head() { 0..0 } else { part };
        let mut answer = request.start(response).await?;
        let file = Arc::new(file);
        let (mut at, mut buffer) = (part.start, Vec::new());
        while at < part.end {
            let left = usize::try_from(part.end - at).unwrap_or(usize::MAX);
            let (file, most) = (file.clone(), left.min(self.piece));
            let read = move || {
                buffer.resize(most, 0);
                let read = file.read_at(&mut buffer, at);
                (buffer, read)
            };
            let (back, read) = self.limiter.run_in_thread(read).await?;
            let n = match read {
                Ok(0) => return Err(ErrorKind::UnexpectedEof.into()),
                Err(error) if error.kind() == ErrorKind::Interrupted => 0,
                read => read?,
            };
            answer.write(&back[..n]).await?;
            (at, buffer) = (at + n as u64, back);
        }
        answer.finish()
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

/// The steps of a name, decoded; `None` for one that leads nowhere.
fn steps(name: &str) -> Option<Vec<Vec<u8>>> {
    name.split('/').map(step).collect()
}

fn step(text: &str) -> Option<Vec<u8>> {
    let mut rest = text.as_bytes();
    let mut step = Vec::with_capacity(rest.len());
    while let [byte, more @ ..] = rest {
        rest = more;
        step.push(match (byte, more) {
            (b'%', [high, low, more @ ..]) => {
                rest = more;
                hex(*high, *low)?
            }
            (b'%', _) => return None,
            _ => *byte,
        });
    }
    // Empty ones, and all that begin with a dot, with them the two that lead elsewhere.
    let is_name = !matches!(step.first(), None | Some(b'.'));
    (is_name && !step.iter().any(|byte| matches!(byte, 0 | b'/'))).then_some(step)
}

/// Opens a regular file, step by step; `None` if there is none.
fn find(directory: &OwnedFd, steps: &[Vec<u8>]) -> io::Result<Option<(File, Metadata)>> {
    let opened = match open(directory, steps) {
        Ok(opened) => File::from(opened),
        Err(
            Errno::NOENT
            | Errno::NOTDIR
            | Errno::ISDIR
            | Errno::LOOP
            | Errno::ACCESS
            | Errno::PERM
            | Errno::NAMETOOLONG
            | Errno::INVAL
            | Errno::ILSEQ
            // A socket, or a device without its driver.
            | Errno::NXIO
            | Errno::NODEV,
        ) => return Ok(None),
        Err(error) => return Err(error.into()),
    };
    let metadata = opened.metadata()?;
    Ok(metadata.is_file().then_some((opened, metadata)))
}

/// Whether it is not the file that is wrong but that there is no room to open one.
fn is_shortage(error: &io::Error) -> bool {
    let short = [Errno::MFILE, Errno::NFILE, Errno::NOMEM, Errno::NOBUFS];
    error.raw_os_error().is_some_and(|code| short.iter().any(|e| e.raw_os_error() == code))
}

fn open(directory: &OwnedFd, steps: &[Vec<u8>]) -> Result<OwnedFd, Errno> {
    let (last, before) = steps.split_last().expect("a name has a step");
    let through = OFlags::PATH | OFlags::DIRECTORY | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let mut here: Option<OwnedFd> = None;
    for step in before {
        let from = here.as_ref().unwrap_or(directory).as_fd();
        let next = openat(from, step.as_slice(), through, Mode::empty())?;
        here = Some(next);
    }
    // A pipe must not keep the thread.
    let found = OFlags::RDONLY | OFlags::NONBLOCK | OFlags::NOCTTY;
    let found = found | OFlags::NOFOLLOW | OFlags::CLOEXEC;
    let from = here.as_ref().unwrap_or(directory).as_fd();
    openat(from, last.as_slice(), found, Mode::empty())
}

/// What the answers tell of a file. Its tag is made of its length and the time of its last change
/// alone, so a copy on another host that has kept that time has the same tag.
fn state(metadata: &Metadata, now: SystemTime) -> State {
    let len = metadata.len();
    let tag = format!("\"{len:x}-{:x}.{:x}\"", metadata.mtime(), metadata.mtime_nsec());
    let now = now.duration_since(UNIX_EPOCH).as_ref().map_or(0, Duration::as_secs);
    // Never later than the answer itself.
    let modified = u64::try_from(metadata.mtime()).unwrap_or(0).min(now);
    State { len, tag, modified }
}

/// The answer with what it tells of the file.
fn told(response: Response, state: &State) -> io::Result<Response> {
    let date = HttpDate::from(UNIX_EPOCH + Duration::from_secs(state.modified)).to_string();
    Ok(response.header("ETag", &state.tag)?.header("Last-Modified", date)?)
}

/// The media type by the ending of a name.
fn kind(name: &str) -> &'static str {
    let ending = name.rsplit_once('.').map_or("", |(_, ending)| ending);
    match ending.to_ascii_lowercase().as_str() {
        "html" | "htm" => "text/html; charset=utf-8",
        "txt" | "md" | "log" => "text/plain; charset=utf-8",
        "css" => "text/css; charset=utf-8",
        "csv" => "text/csv; charset=utf-8",
        "js" | "mjs" => "text/javascript; charset=utf-8",
        "json" => "application/json",
        "xml" => "application/xml",
        "pdf" => "application/pdf",
        "wasm" => "application/wasm",
        "zip" => "application/zip",
        "gz" => "application/gzip",
        "svg" => "image/svg+xml",
        "png" => "image/png",
        "jpg" | "jpeg" => "image/jpeg",
        "gif" => "image/gif",
        "webp" => "image/webp",
        "ico" => "image/x-icon",
        "mp3" => "audio/mpeg",
        "mp4" => "video/mp4",
        "webm" => "video/webm",
        "woff2" => "font/woff2",
        _ => "application/octet-stream",
    }
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
        // On this system a backslash is a letter.
        assert_eq!(words("..\\a"), None);
        assert_eq!(words("a\\..").as_deref(), Some(&b"a\\.."[..]));
    }
}
