//! The numbers that bound something in this crate and have no option of their own.
//!
//! Those with an option have their defaults beside it.

use std::time::Duration;

/// Bytes that are offered to a stream at a time under a write deadline: progress within them is
/// seen at their end at the latest.
pub(crate) const PIECE: usize = 1 << 20;

/// How long a listener backs off first when descriptors or memory run out.
pub(crate) const BACK_OFF_FIRST: Duration = Duration::from_millis(5);

/// The longest that it backs off, after doubling.
pub(crate) const BACK_OFF_LONGEST: Duration = Duration::from_secs(1);

/// How often a listener backs off once the kernel shuts down.
pub(crate) const LAST_TRIES: u32 = 3;

/// The most field lines that a head may have.
pub(crate) const FIELDS: usize = 100;

/// Empty lines that a client may send before a request.
pub(crate) const EMPTY_LINES: usize = 8;

/// Bytes of all chunk extensions of a body together.
pub(crate) const EXTENSIONS: u32 = 4096;

/// Bytes of all trailer fields of a body together.
pub(crate) const TRAILERS: u32 = 16 * 1024;

/// Digits of a chunk's size: as many as a u64 has, leading zeros included.
pub(crate) const DIGITS: u8 = 16;

/// Bytes that wait to be written before no more are gathered.
pub(crate) const GATHER: usize = 16 * 1024;

/// Bytes of a streamed body that a handler may write to a client that wants none, before a write
/// fails as if the client had gone: one that never ends would go on without anybody.
pub(crate) const DISCARDED: usize = 1 << 20;

/// Bytes of an answer for which another operation is taken from the budget of the task that writes.
pub(crate) const OPERATION: usize = 2 * 1024;

/// Bytes that are read and thrown away from a peer that goes on sending after the last answer, so
/// that it reads the answer and not a reset. Twice the longest body, for a client that sends all of
/// one before it reads; `Deadlines::linger` bounds it in time.
pub(crate) const LINGER: u64 = 16 << 20;

/// Bytes of a read buffer.
pub(crate) const READ_BUFFER: usize = 16 * 1024;

/// How long a listener has to go on without a back-off before that is over.
pub(crate) const BACK_OFF_OVER: Duration = Duration::from_secs(10);

/// How old the last `cap` line of a limit is, at least, before there is another.
pub(crate) const CAP_PAUSE: Duration = Duration::from_secs(1);

/// Connections that were refused because there were too many, and that may still read why.
pub(crate) const TURNED_AWAY: usize = 1024;

/// How long a connection that is new, and has sent nothing, may still take to do so once the
/// server drains: its first request may be on its way.
pub(crate) const FIRST_BYTE: Duration = Duration::from_millis(500);

/// How long a handler may go on whose client has left: it may only have closed its sending side.
pub(crate) const LEFT: Duration = Duration::from_millis(250);

/// Bytes of a file that are read at a time.
pub(crate) const FILE_PIECE: usize = 128 * 1024;

/// Bytes of an answer's head that a client takes.
pub(crate) const REPLY_HEAD: usize = 64 * 1024;

/// Interim answers (100 to 199) that a client passes over before the final one.
pub(crate) const INTERIM: usize = 8;

/// Buffers that wait for their next use; more are freed.
pub(crate) const SPARE: usize = 64;

/// How long a connection to one address of several may take before the next address is tried as
/// well: what RFC 8305 recommends.
pub(crate) const ATTEMPT_DELAY: Duration = Duration::from_millis(250);
