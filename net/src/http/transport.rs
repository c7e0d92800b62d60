//! The stream of a busy connection, the bytes to be written to it, and every wait for its peer.
//!
//! Responses are gathered in `out`. Before the task waits to read, it writes them, because the peer
//! may be waiting for them. A read is first tried without a wait. If there is nothing to read, the
//! task waits under the deadline of the phase, and an `Expired` error ends the wait when the
//! deadline passes. A read that does not fill its buffer took everything, so `drained` skips the
//! next try, which would cost a system call that fails with EAGAIN.
//!
//! For example, two pipelined requests arrive in one read. Both responses go into `out`. The third
//! head has not arrived, so the transport writes `out` in one call, and waits.
//!
//! This layer deals in bytes and phases. It must not know requests or responses.

use std::fmt::Display;
use std::future::{Future, poll_fn};
use std::io::{self, ErrorKind, IoSlice};
use std::net::SocketAddr;
use std::rc::Rc;
use std::task::{Context, Poll};

use traps::internal::take_budget;
use traps::{Time, yield_now};

use super::config::Config;
use super::guard::access_log::AccessLog;
use super::guard::caps::Conn;
use super::guard::connections::Entry;
use super::guard::memory::Room;
use super::limits::Deadlines;
use super::phase::{Expired, Over, Phase};
use super::state::State;
use crate::limits::{GATHER, OPERATION, PIECE, READ_BUFFER};
use crate::min_rate::MinRate;
use crate::rate_meter::{RateMeter, flush_within, guard, is_timeout, write_until_stalled};
use crate::record::Handle;
use crate::stream::{Stream, look};

/// The time since the last read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Since {
    /// No time has passed, and nothing was written.
    Read,
    /// Bytes may have arrived, or the connection may have failed.
    Time,
    /// Bytes may have arrived, but the connection was found alive in the meantime.
    Check,
}

/// The stream of a busy connection, and the bytes to be written to it.
#[derive(Debug)]
pub(crate) struct Transport<S> {
    stream: S,
    pub(crate) entry: Rc<Entry>,
    /// The gathered bytes of responses, not written yet.
    pub(crate) out: Vec<u8>,
    /// The access log of the connection, if the server has one.
    pub(crate) log: Option<Box<AccessLog>>,
    /// The time at which the head in hand must be whole. Set when the connection first waits for
    /// it.
    pub(crate) head_until: Option<Time>,
    /// The rate at which the peer takes bytes.
    meter: RateMeter,
    /// Whether the last read took everything. If so, the next read would block.
    drained: bool,
    since: Since,
    /// The number of requests answered since this task last waited to read.
    pub(crate) answered: u32,
    /// The room for the body that the connection keeps in memory.
    pub(crate) room: Option<Room>,
    /// The number of bytes of the room that are for a long head.
    head_room: u64,
    /// Whether the last bytes came after the grace of a drain.
    pub(crate) late: bool,
    /// The number of reads, writes and waits for the peer so far. It wraps around.
    pub(crate) moves: u32,
}

impl<S: Stream> Transport<S> {
    /// Makes a transport over a stream that may have bytes to read. `out` is empty.
    #[inline]
    pub(crate) fn new(
        stream: S,
        entry: Rc<Entry>,
        (out, log): (Vec<u8>, Option<Box<AccessLog>>),
        config: &Config,
    ) -> Transport<S> {
        let late = config.open.is_after_grace(&entry);
        Transport {
            stream,
            entry,
            out,
            log,
            head_until: None,
            room: None,
            head_room: 0,
            meter: RateMeter::default(),
            drained: false,
            since: Since::Read,
            answered: 0,
            late,
            moves: 0,
        }
    }

    /// Whether the gathered bytes must be written before more is gathered.
    pub(crate) fn is_full(&self) -> bool {
        self.out.len() > GATHER || self.log.as_deref().is_some_and(AccessLog::is_long)
    }

    /// Notes for the access log that a response begins.
    pub(crate) fn begin_response(&mut self, status: u16) {
        if let Some(log) = &mut self.log {
            log.begin(status, self.out.len());
        }
    }

    /// Counts bytes of the body of a response for the access log.
    pub(crate) fn count_body(&mut self, bytes: usize) {
        self.log.iter_mut().for_each(|log| log.count(bytes));
    }

    /// Reports all ended responses to the access log.
    pub(crate) fn report(&mut self, config: &Config) {
        self.log.iter_mut().for_each(|log| log.report(&config.on_exchange));
    }

    /// The address of the peer.
    pub(crate) fn peer(&self) -> Option<SocketAddr> {
        self.log.as_ref().and_then(|log| log.peer).or_else(|| self.stream.peer())
    }

    /// Whether the connection has failed, so that no response reaches the peer. Makes one system
    /// call for all requests that arrived together, at the second of them, and one more after time
    /// has passed.
    pub(crate) fn has_failed(&mut self) -> bool {
        match (self.answered, self.since) {
            (0, _) => return false,
            (_, Since::Time) => self.since = Since::Check,
            (1, _) => {}
            _ => return false,
        }
        self.stream.has_failed()
    }

    /// Whether a read would begin with a wait.
    pub(crate) fn is_drained(&self) -> bool {
        self.drained
    }

    /// Whether the last read took everything and no bytes can have arrived since then.
    pub(crate) fn is_current(&self) -> bool {
        self.drained && self.since == Since::Read
    }

    /// Whether the connection closes as soon as it has nothing left to do.
    pub(crate) fn leaves(&self, config: &Config) -> bool {
        self.entry.leaves.get() || config.is_draining() && self.entry.has_asked()
    }

    /// Reports that the connection hit the limit called `name`.
    #[cold]
    pub(crate) fn hit(&self, config: &Config, name: &'static str, limit: impl Display) {
        let conn = Conn(self.entry.number, self.peer());
        config.open.caps.hit(conn, name, limit, self.entry.now());
    }

    /// Reports that a wait in `phase` is over. Returns the error.
    #[cold]
    fn expire(&mut self, phase: Phase, over: Over, config: &Config) -> io::Error {
        let gives_way = self.room.as_ref().is_some_and(Room::gives_way);
        let over = if gives_way { Over::Memory } else { over };
        if let Some((name, limit)) = phase.limit(over, &config.limits, &config.deadlines) {
            self.hit(config, name, limit);
        }
        if matches!(over, Over::Memory | Over::Seat) {
            self.let_go();
        }
        let is_write = phase == Phase::Write;
        let kind = if is_write { ErrorKind::ConnectionReset } else { ErrorKind::TimedOut };
        io::Error::new(kind, Expired(phase, over))
    }

    /// The reason why a wait ended before its limit.
    fn cut(&self) -> Over {
        if self.entry.gives_way() { Over::Seat } else { Over::Drain }
    }

    /// Notes that time passes or bytes go out, so bytes may arrive or the connection may fail.
    fn take_time(&mut self) {
        self.since = Since::Time;
        if self.out.len() > GATHER {
            self.entry.much.set(true);
        }
    }

    // ---- Reading --------------------------------------------------------------------------------

    /// Reads more of a head, and waits for it if necessary. Returns zero if the peer has finished.
    pub(crate) async fn read_head(&mut self, buf: &mut [u8], config: &Config) -> io::Result<usize> {
        let begun = self.entry.now();
        let until = *self.head_until.get_or_insert_with(|| begun + config.deadlines.head);
        let n = self.read_until(buf, (Phase::Head, until), config).await?;
        self.note_time(config);
        Ok(n)
    }

    /// Reads more of a body, as [`read_head`](Transport::read_head) does. The peer must send at
    /// `rate`.
    pub(crate) async fn read_body(
        &mut self,
        buf: &mut [u8],
        (meter, rate): (&mut RateMeter, u64),
        config: &Config,
    ) -> io::Result<usize> {
        loop {
            if let Some(n) = self.try_read(buf).await? {
                meter.count(n);
                self.moved(n);
                return Ok(n);
            }
            self.begin_wait(config).await?;
            if self.room.as_ref().is_some_and(Room::gives_way) {
                return Err(self.expire(Phase::Body, Over::Memory, config));
            }
            if self.entry.gives_way() {
                return Err(self.expire(Phase::Body, Over::Seat, config));
            }
            let deadline = self.entry.deadline();
            let Deadlines { body, body_window, .. } = config.deadlines;
            let patience = meter.patience(MinRate::new(rate, body_window));
            let over = if patience < body { Over::Rate(rate) } else { Over::Time };
            let now = deadline.now();
            let until = now + patience.min(body);
            let bound = until.min(config.open.bound(State::Body, now));
            let wait = meter.waits(deadline, self.room.as_ref().map(Room::slowness));
            let shown = config.open.wait(&self.entry, State::Body);
            let waited = guard(deadline, ("body", bound), self.stream.readable()).await;
            drop((wait, shown));
            self.end_wait((Phase::Body, over, until), waited, config)?;
        }
    }

    /// Reads the next bytes from the peer, and waits for them until `until` at most.
    pub(crate) async fn read_until(
        &mut self,
        buf: &mut [u8],
        (phase, until): (Phase, Time),
        config: &Config,
    ) -> io::Result<usize> {
        loop {
            if let Some(n) = self.try_read(buf).await? {
                self.moved(n);
                return Ok(n);
            }
            self.begin_wait(config).await?;
            if self.room.as_ref().is_some_and(Room::gives_way) {
                return Err(self.expire(phase, Over::Memory, config));
            }
            let deadline = self.entry.deadline();
            let is_head = phase == Phase::Head;
            let bound = match is_head {
                true => until.min(config.open.bound(State::Partial, deadline.now())),
                false => until,
            };
            let limit = (if is_head { "head" } else { "linger" }, bound);
            // A head needs no minimum rate.
            let mut meter = RateMeter::default();
            let wait = meter.waits(deadline, self.room.as_ref().map(Room::slowness));
            let shown = is_head.then(|| config.open.wait(&self.entry, State::Partial));
            let waited = guard(deadline, limit, self.stream.readable()).await;
            drop((wait, shown));
            self.end_wait((phase, Over::Time, until), waited, config)?;
        }
    }

    /// Notes that `n` bytes came from the peer or went to it.
    fn moved(&mut self, n: usize) {
        self.moves = self.moves.wrapping_add(1);
        if let Some(room) = &self.room {
            room.moved(n);
        }
    }

    // ---- Memory ---------------------------------------------------------------------------------

    /// Takes room in memory for a read buffer of `size` bytes, beyond the usual size. Fails if
    /// there is none, or if bodies wait for it. Then the head is refused.
    pub(crate) fn hold_head(&mut self, size: usize, config: &Config) -> io::Result<()> {
        let bytes = (size - READ_BUFFER) as u64;
        if !self.room(config).grow_if_unwanted(bytes, &config.limits) {
            return Err(self.expire(Phase::Head, Over::Memory, config));
        }
        self.head_room = bytes;
        Ok(())
    }

    /// Returns the room of the connection. The first call of a request makes it.
    fn room(&mut self, config: &Config) -> &mut Room {
        if self.room.is_none() {
            // The rate of the response is checked separately.
            self.meter = RateMeter::default();
        }
        self.room.get_or_insert_with(|| Room::new(&config.memory, &self.entry))
    }

    /// Takes room in memory for `bytes` bytes in all, in addition to a long head. Waits for the
    /// room until `until` at most.
    pub(crate) async fn hold(
        &mut self,
        bytes: u64,
        until: Time,
        config: &Config,
    ) -> io::Result<()> {
        self.room(config).is_for_body();
        self.grow(self.head_room + bytes, until, config).await
    }

    async fn grow(&mut self, bytes: u64, until: Time, config: &Config) -> io::Result<()> {
        if self.room(config).try_grow(bytes, &config.limits) {
            return Ok(());
        }
        Box::pin(self.wait_for_room(bytes, until, config)).await
    }

    /// Takes room in memory for a buffer of `bytes` bytes, which a streamed response uses again and
    /// again. Waits for the room as [`hold`](Transport::hold) does.
    pub(crate) async fn hold_buffer(
        &mut self,
        bytes: u64,
        until: Time,
        config: &Config,
    ) -> io::Result<()> {
        let held = self.room(config).held();
        self.grow(held + bytes, until, config).await?;
        // The reserve of the memory is for bodies, which end.
        self.room.iter().for_each(Room::complete);
        Ok(())
    }

    /// Takes room in memory for `more` more bytes of such a buffer. Returns false if that needs a
    /// wait, or if bodies wait for it.
    pub(crate) fn grow_buffer(&mut self, more: u64, config: &Config) -> bool {
        let room = self.room(config);
        room.grow_if_unwanted(room.held() + more, &config.limits)
    }

    /// Counts a response of `bytes` bytes that a handler has made in memory.
    pub(crate) fn count_response(&mut self, bytes: u64, config: &Config) {
        self.room(config).force(bytes, &config.limits);
    }

    async fn wait_for_room(&mut self, bytes: u64, until: Time, config: &Config) -> io::Result<()> {
        self.begin_wait(config).await?;
        let Transport { stream, entry, room, .. } = self;
        let waiter = room.as_ref().expect("it was made before").queue(bytes);
        let (begun, shown) = (entry.now(), config.open.wait(entry, State::Room));
        let last = || until.min(config.open.bound(State::Room, begun));
        let grown = waiter.grow(stream, (&config.limits, config.half_close), last).await;
        drop((waiter, shown));
        if !grown? || self.entry.gives_way() {
            let over = if self.entry.gives_way() { Over::Seat } else { Over::Memory };
            return Err(self.expire(Phase::Body, over, config));
        }
        self.note_time(config);
        Ok(())
    }

    /// Releases the room in memory, because the request no longer needs it.
    pub(crate) fn let_go(&mut self) {
        if self.room.is_some() {
            (self.room, self.head_room) = (None, 0);
        }
    }

    /// Writes all gathered bytes before a wait to read, because the peer may be waiting for a
    /// response.
    async fn begin_wait(&mut self, config: &Config) -> io::Result<()> {
        self.flush(config).await?;
        self.answered = 0;
        self.moves = self.moves.wrapping_add(1);
        Ok(())
    }

    /// Ends a wait for the peer that could last until `until`, and then would end by `over`.
    fn end_wait(
        &mut self,
        (phase, over, until): (Phase, Over, Time),
        waited: io::Result<()>,
        config: &Config,
    ) -> io::Result<()> {
        self.note_time(config);
        match waited {
            Err(error) if is_timeout(&error) => {
                let over = if self.entry.until() < until { self.cut() } else { over };
                return Err(self.expire(phase, over, config));
            }
            waited => waited?,
        }
        // The server may have chosen this connection to give way in the turn in which the bytes
        // came. Its place is then another's.
        if matches!(phase, Phase::Head | Phase::Body) && self.entry.gives_way() {
            return Err(self.expire(phase, Over::Seat, config));
        }
        self.drained = false;
        Ok(())
    }

    /// Notes whether the grace of a drain is over, for the bytes that arrive now.
    fn note_time(&mut self, config: &Config) {
        self.late = config.open.is_after_grace(&self.entry);
    }

    /// Reads the bytes that have arrived. Returns `None` if it would have to wait, or if the budget
    /// is spent, and zero if the peer has finished.
    #[inline]
    pub(crate) fn read_now(
        &mut self,
        buf: &mut [u8],
        cx: &mut Context<'_>,
    ) -> io::Result<Option<usize>> {
        if self.drained {
            return Ok(None);
        }
        let size = buf.len();
        let n = self.stream.try_read(buf, cx).transpose()?;
        // The end of the stream is found again by the next read.
        self.drained = n.is_none_or(|n| 0 < n && n < size);
        self.since = Since::Read;
        Ok(n)
    }

    /// Reads as [`read_now`](Transport::read_now) does, from an async function, which has no
    /// context.
    async fn try_read(&mut self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        poll_fn(|cx| Poll::Ready(self.read_now(buf, cx))).await
    }

    /// Reads the bytes that have arrived, without a wait. Returns `None` if there can be none.
    pub(crate) async fn look(&mut self, buf: &mut [u8]) -> io::Result<Option<usize>> {
        look(&mut self.stream, buf).await
    }

    /// Waits until the peer closes its side.
    pub(crate) fn closed(&mut self) -> impl Future<Output = io::Result<()>> {
        self.stream.closed()
    }

    // ---- Writing --------------------------------------------------------------------------------

    /// Writes the gathered bytes, and lets every other ready task run.
    pub(crate) async fn give_way(&mut self, config: &Config) -> io::Result<()> {
        self.begin_wait(config).await?;
        Ok(yield_now().await?)
    }

    /// Writes all gathered bytes.
    pub(crate) async fn flush(&mut self, config: &Config) -> io::Result<()> {
        if self.out.is_empty() {
            self.entry.flushed();
            return Ok(());
        }
        self.take_time();
        let size = self.out.len();
        if poll_fn(|cx| Poll::Ready(self.try_flush(cx, config))).await? {
            weigh(size);
            return Ok(());
        }
        // Boxed, because few connections ever need it.
        Box::pin(self.write_through(&[], config)).await
    }

    /// Writes as many gathered bytes as the stream takes without a wait. Returns whether all were
    /// written.
    #[inline]
    fn try_flush(&mut self, cx: &mut Context<'_>, config: &Config) -> io::Result<bool> {
        while !self.out.is_empty() {
            match self.stream.try_write(&self.out, cx).transpose()? {
                Some(0) => return Err(ErrorKind::WriteZero.into()),
                // Record this at once: if the future is dropped in the next wait, these bytes must
                // not be written again.
                Some(n) => self.written(n),
                None => {
                    self.entry.much.set(true);
                    return Ok(false);
                }
            }
        }
        self.entry.flushed();
        self.report(config);
        Ok(true)
    }

    /// Writes as many gathered bytes as the stream takes without a wait, while the handler waits.
    /// Ignores a failure, because the next write will return it again.
    pub(crate) async fn flush_beside(&mut self, config: &Config) {
        self.take_time();
        let flush = |cx: &mut Context<'_>| {
            // If the budget is spent, nothing was written, so try again in the next turn.
            if matches!(self.try_flush(cx, config), Ok(false)) && !take_budget() {
                cx.waker().wake_by_ref();
            }
            Poll::Ready(())
        };
        poll_fn(flush).await;
    }

    /// Removes the first `n` gathered bytes, which have been written.
    fn written(&mut self, n: usize) {
        self.moves = self.moves.wrapping_add(1);
        self.log.iter_mut().for_each(|log| log.take(n));
        if n == self.out.len() {
            self.out.clear();
        } else {
            self.entry.much.set(true);
            self.out.drain(..n);
        }
    }

    /// Writes all gathered bytes and then `more`, which is not copied.
    pub(crate) async fn write_through(&mut self, more: &[u8], config: &Config) -> io::Result<()> {
        self.since = Since::Time;
        self.log.iter_mut().for_each(|log| log.direct = more.len());
        self.entry.much.set(true);
        let rate = config.deadlines.write_rate(self.room.as_ref().map_or(0, Room::of_body));
        let mut at = 0;
        while !self.out.is_empty() || at < more.len() {
            self.moves = self.moves.wrapping_add(1);
            let Transport { stream, entry, out, meter, room, .. } = self;
            let rest = &more[at..more.len().min(at + PIECE)];
            let bufs = [IoSlice::new(out), IoSlice::new(rest)];
            let limit = (entry.deadline(), MinRate::new(rate, config.deadlines.write));
            let meter = (meter, room.as_ref().map(Room::slowness));
            let shown = config.open.wait(entry, State::Write);
            let last = |begun| match shown.is_cut() {
                true => Time::ZERO,
                false => config.open.bound(State::Write, begun),
            };
            let n = write_until_stalled(stream, &bufs, limit, meter, last).await;
            let is_cut = shown.is_cut();
            drop(shown);
            let n = match n? {
                Some(0) => return Err(ErrorKind::WriteZero.into()),
                Some(n) => n,
                None => {
                    let over = match rate > config.deadlines.write_rate {
                        _ if is_cut => Over::Seat,
                        _ if config.is_draining() && !self.meter.is_late() => Over::Drain,
                        true => Over::Rate(rate),
                        false => Over::Time,
                    };
                    return Err(self.expire(Phase::Write, over, config));
                }
            };
            self.moved(n);
            weigh(n);
            let gathered = n.min(self.out.len());
            self.written(gathered);
            at += n - gathered;
            if let Some(log) = &mut self.log {
                log.take(n - gathered);
                log.direct = more.len() - at;
            }
            // The connection may be chosen to give way in the same turn in which its client takes
            // bytes.
            if is_cut && (!self.out.is_empty() || at < more.len()) {
                return Err(self.expire(Phase::Write, Over::Seat, config));
            }
        }
        self.entry.flushed();
        self.report(config);
        Ok(())
    }

    /// Whether the stream can send a file without reading it.
    pub(crate) fn sends_files(&self) -> bool {
        self.stream.file_sender().is_some()
    }

    /// Writes all gathered bytes before those of a file. Returns a duplicate of the socket for the
    /// job that sends the file, or an empty handle if there is none.
    pub(crate) async fn lend(&mut self, config: &Config) -> io::Result<Handle<'c'>> {
        self.take_time();
        // A job that is abandoned may still send.
        self.entry.much.set(true);
        let Transport { stream, out, .. } = self;
        let sent =
            stream.file_sender().filter(|_| !out.is_empty()).and_then(|it| it.send_before(out));
        if let Some(n) = sent.transpose()? {
            self.written(n);
            weigh(n);
        }
        self.flush(config).await?;
        // The responses before this one have gone out.
        self.report(config);
        let duplicate = self.stream.file_sender().map(|it| it.duplicate());
        Ok(duplicate.and_then(Result::ok).unwrap_or(Handle::EMPTY))
    }

    /// Records the result of the job: it was to send a `part` of a file, its offset and length.
    /// Returns the number of bytes that it sent.
    pub(crate) fn sent_file(
        &mut self,
        part: (u64, usize),
        sent: io::Result<usize>,
    ) -> io::Result<usize> {
        let sender = self.stream.file_sender().expect("rule: a stream that sent a file can do so");
        let n = sender.sent(part, sent)?;
        self.since = Since::Time;
        self.entry.much.set(true);
        self.meter.count(n);
        self.moved(n);
        self.log.iter_mut().for_each(|log| log.take(n));
        weigh(n);
        Ok(n)
    }

    /// Writes all gathered bytes, and the bytes that the stream holds back.
    pub(crate) async fn flush_through(&mut self, config: &Config) -> io::Result<()> {
        self.flush(config).await?;
        let (stream, deadline) = (&mut self.stream, self.entry.deadline());
        let mut until = Time::ZERO;
        let begin = |now| {
            until = now + config.deadlines.write;
            let bound = until.min(config.open.bound(State::Write, now));
            (bound, config.open.wait(&self.entry, State::Write))
        };
        match flush_within(stream, deadline, begin).await? {
            Some(()) => Ok(()),
            None => {
                let over = if self.entry.until() < until { self.cut() } else { Over::Time };
                Err(self.expire(Phase::Write, over, config))
            }
        }
    }

    /// Waits until the peer has everything that was written, or its deadline passes.
    pub(crate) async fn sent(&mut self, config: &Config) -> io::Result<()> {
        let deadline = self.entry.deadline();
        let now = deadline.now();
        let until = (now + config.deadlines.write).min(config.open.bound(State::Write, now));
        let _shown = config.open.wait(&self.entry, State::Write);
        match guard(deadline, ("write", until), self.stream.sent()).await {
            Err(error) if is_timeout(&error) => Ok(()),
            sent => sent,
        }
    }

    pub(crate) fn shutdown(&mut self) -> io::Result<()> {
        self.stream.shutdown()
    }

    /// Sends the bytes that the stream holds back, and then the end message of a stream that has
    /// one. Waits until the peer has it, or its deadline passes. Does nothing to other streams.
    pub(crate) async fn send_end(&mut self, config: &Config) -> io::Result<()> {
        // A peer that has left needs no end message.
        if self.stream.has_end_message() && self.stream.shutdown().is_ok() {
            self.sent(config).await?;
        }
        Ok(())
    }
}

/// Charges a write of `bytes` bytes to the budget of the task. A large write counts as several
/// operations. Otherwise a task whose peer reads fast could write 2 MiB before other tasks run.
fn weigh(bytes: usize) {
    traps::internal::spend_budget(u32::try_from(bytes / OPERATION).unwrap_or(u32::MAX));
}
