//! The fixed limits of this crate. A limit with an option has its default next to the option.

use std::time::Duration;

/// The largest number of bytes offered to a stream at once under a write deadline. Progress within
/// a piece is noticed at the end of the piece at the latest.
pub(crate) const PIECE: usize = 1 << 20;

/// The length of a listener's first back-off, when descriptors or memory have run out.
pub(crate) const BACK_OFF_FIRST: Duration = Duration::from_millis(5);

/// The length of a listener's longest back-off; the back-offs double up to this length.
pub(crate) const BACK_OFF_LONGEST: Duration = Duration::from_secs(1);

/// The number of back-offs of a listener once the kernel shuts down.
pub(crate) const LAST_TRIES: u32 = 3;

/// The largest number of field lines in a header section.
pub(crate) const FIELDS: usize = 100;

/// The largest number of empty lines that a client can send before a request.
pub(crate) const EMPTY_LINES: usize = 8;

/// The largest number of bytes in the chunk extensions of a body, beyond one for every
/// [`PER_EXTENSION`] bytes of data. So a signature of 85 bytes can be on each of any number of
/// chunks of some kilobytes, but not on each of many small ones.
pub(crate) const EXTENSIONS: u32 = 4096;

/// The number of bytes of data in a chunk for each byte of an extension that is not counted.
pub(crate) const PER_EXTENSION: u64 = 8;

/// The largest number of bytes in all trailer fields of a body together.
pub(crate) const TRAILERS: u32 = 16 * 1024;

/// The largest number of digits of a chunk size, leading zeros included: enough for any u64.
pub(crate) const DIGITS: u8 = 16;

/// The number of bytes that an HTTP connection gathers before it writes them.
pub(crate) const GATHER: usize = 16 * 1024;

/// The number of bytes of a streamed body that a handler can write to a client that wants no body.
/// The next write fails as if the client had gone. Otherwise an endless body would continue without
/// a reader.
pub(crate) const DISCARDED: usize = 1 << 20;

/// The number of bytes of a response that cost the writing task one more operation of its budget.
pub(crate) const OPERATION: usize = 2 * 1024;

/// The largest number of bytes that the server reads and discards after the last response, so that
/// a client that is still sending reads the response and not a reset. Twice the longest body, for a
/// client that sends a whole body before it reads. `Deadlines::linger` bounds the time.
pub(crate) const LINGER: u64 = 16 << 20;

/// The size of a read buffer, in bytes.
pub(crate) const READ_BUFFER: usize = 16 * 1024;

/// The shortest time from a log line about back-offs to a log line about a new episode.
pub(crate) const BACK_OFF_PAUSE: Duration = Duration::from_secs(10);

/// The shortest time between two lines in the log about the same limit, or about failures of peers.
pub(crate) const CAP_PAUSE: Duration = Duration::from_secs(1);

/// The largest number of refused connections that the server keeps so that their clients can read
/// the reason.
pub(crate) const REFUSED_CONNECTIONS: usize = 1024;

/// The time that a new connection has to send its first byte once the server drains, because its
/// first request may be under way.
pub(crate) const FIRST_BYTE: Duration = Duration::from_millis(500);

/// The length of each wait for a peer once the grace of a drain is over: for a piece of a body, or
/// for room to write. A peer that takes longer would hold up the end of the process.
pub(crate) const DRAIN_WAIT: Duration = Duration::from_secs(2);

/// The time that a handler has left once its client has gone. The client may have closed its
/// sending side only.
pub(crate) const LEFT: Duration = Duration::from_millis(250);

/// How long a client that holds memory may be slow while others wait for memory.
pub(crate) const SLOW: Duration = Duration::from_millis(250);

/// The number of bytes of a file that are read at a time, at first.
pub(crate) const FILE_PIECE: usize = 128 * 1024;

/// The largest number of bytes of a file that are read at a time. Each piece costs a job on another
/// thread, which takes longer than the copy of 128 KiB.
pub(crate) const LARGEST_FILE_PIECE: usize = 1 << 20;

/// The largest number of bytes of a file that one job sends to a socket. A job that sends to a fast
/// client would otherwise keep its thread up to the end of the file.
pub(crate) const FILE_JOB: usize = 4 << 20;

/// The largest header section of a response that a client accepts, in bytes.
pub(crate) const REPLY_HEAD: usize = 64 * 1024;

/// The largest number of interim responses (100 to 199) that a client skips before the final one.
pub(crate) const INTERIM: usize = 8;

/// The largest number of unused buffers that are kept for reuse; further buffers are freed.
pub(crate) const SPARE: usize = 64;

/// The time that a connection attempt has before the next of several addresses is tried as well.
/// RFC 8305 recommends this value.
pub(crate) const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
