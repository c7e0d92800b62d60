//! The flight recorder: the last lines of the log, in memory, to be read after something went
//! wrong.
//!
//! A line is stored as packed bytes (`pack.rs`), which become text only in a [`Dump`]. The bytes
//! are in a ring of four segments. A full segment is frozen, and the next one takes the place of
//! the oldest.
//!
//! A reader that begins in the middle of a log does not know which tasks exist, what they wait for
//! and what they hold. So each segment has a *head*: copies of the earlier lines that are *in
//! force* at its beginning. When a segment is nearly full, the kernel names these lines by their
//! numbers at the start of its next turn (`put_lines_in_force` in `state.rs`). Each of them is in
//! the head of the full segment or in the segment itself, so one walk over both finds them all:
//!
//! ```text
//!             head                     lines
//! segment 1   -                        #0001 spawn a   #0002 a blocks   ...   #0900 fire
//! segment 2   #0001 spawn a  #0002     #0901 ...                              #1800 exit a
//! segment 3   -                        #1801 ...
//! ```
//!
//! The kernel keeps the numbers of most lines in its records. The recorder itself follows the few
//! things that have no record there: spans, jobs, and phases of a shutdown ([`Ring::follow`]).
//!
//! Other threads can make a dump too, because a stuck kernel cannot. So a lock guards the ring. The
//! kernel's thread takes it for each line, and a dump takes it to copy one segment; the other
//! segments are frozen, and are shared.
//!
//! The obvious way is a ring of lines as text. It would take six times the memory, and formatting a
//! line costs more than all the rest of its event.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::fmt;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::io;
use std::mem;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::{self, JoinHandle};

use traps::Time;

use super::event::{Event, Line, Moved, Seq, Timed};
use super::form::{Form, Opt, Out, Own, word};
use super::pack::{Constants, Pack, Packed, ROOM, Unpack};

/// The number of segments. A dump has the lines of at least all but one of them.
const SEGMENTS: usize = 4;

/// The flight recorder of a kernel: it keeps the last lines of the log in memory
/// ([`Kernel::flight`](crate::Kernel::flight)). Clones are handles to the same recorder, also for
/// other threads.
#[derive(Clone)]
pub struct Flight(Arc<Recording>);

/// A hook of the owner for dumps.
type DumpHook = Arc<Mutex<dyn FnMut(&Dump) + Send>>;

struct Recording {
    ring: Mutex<Ring>,
    hook: Mutex<Option<DumpHook>>,
    /// The dumps that are not written yet, the oldest first.
    waiting: Mutex<VecDeque<(DumpHook, Dump)>>,
    /// Held while hooks run. The kernel's thread must not wait for it.
    writing: Mutex<()>,
    /// The threads that are writing dumps.
    writers: Mutex<Vec<JoinHandle<()>>>,
}

impl Flight {
    pub(crate) fn new(bytes: usize, header: String) -> Flight {
        let ring = Mutex::new(Ring::new(bytes, header));
        let (hook, waiting, writers) = (Mutex::default(), Mutex::default(), Mutex::default());
        Flight(Arc::new(Recording { ring, hook, waiting, writing: Mutex::default(), writers }))
    }

    /// Calls `hook` with each dump, on a thread of its own. Dropping the kernel waits for it.
    /// Replaces an earlier hook, which still gets the dumps that were made before.
    pub fn on_dump(&self, hook: impl FnMut(&Dump) + Send + 'static) {
        let earlier = enter(&self.0.hook).replace(Arc::new(Mutex::new(hook)));
        // Not under the lock: the drop of a hook is code of the owner.
        drop(earlier);
    }

    /// Makes a dump and passes it to the hook ([`Flight::on_dump`]). `cause` is one word for the
    /// reason. Returns at once, also in a hook, which gets the dumps one by one in their order. If
    /// the system has no thread to give, the hook runs before the call returns.
    pub fn dump(&self, cause: &str) {
        self.dump_at(cause, None);
    }

    /// Makes a dump of the lines so far. `cause` is one word for the reason. Copies at most a
    /// quarter of the ring.
    #[must_use]
    pub fn snapshot(&self, cause: &str) -> Dump {
        enter(&self.0.ring).dump(cause, None)
    }

    /// Dumps like [`Flight::dump`]. `line` is the line of the cause; the default is the last one.
    fn dump_at(&self, cause: &str, line: Option<Seq>) {
        let Some(hook) = enter(&self.0.hook).clone() else { return };
        let dump = enter(&self.0.ring).dump(cause, line);
        enter(&self.0.waiting).push_back((hook, dump));
        let theirs = self.clone();
        let thread = thread::Builder::new().name("trapline-flight".to_owned());
        match thread.spawn(move || theirs.write(enter(&theirs.0.writing))) {
            Ok(thread) => {
                let mut writers = enter(&self.0.writers);
                writers.retain(|thread| !thread.is_finished());
                writers.push(thread);
            }
            // The system has no thread to give. If a dump is being written, perhaps further up this
            // stack, its writer writes this one too.
            Err(_) => {
                self.0.writing.clear_poison();
                if let Ok(turn) = self.0.writing.try_lock() {
                    self.write(turn);
                }
            }
        }
    }

    /// Passes the waiting dumps to their hooks.
    fn write(&self, _turn: MutexGuard<'_, ()>) {
        loop {
            let Some((hook, dump)) = enter(&self.0.waiting).pop_front() else { break };
            enter(&hook)(&dump);
        }
    }
}

impl fmt::Debug for Flight {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Flight").finish_non_exhaustive()
    }
}

/// The recorder as its kernel has it. A trait, so that a program which never calls
/// [`Kernel::flight`](crate::Kernel::flight) has none of this code in it. A page that a browser
/// loads needs it so.
pub(crate) trait LineRecorder {
    /// Records a line. Returns whether the kernel must name the lines in force.
    fn record_line(&self, line: &Line<'_>) -> bool;

    /// Begins the next segment of the ring.
    fn begin_segment(&self, name_lines: &mut dyn FnMut(&mut LinesInForce<'_>));

    /// Makes a dump whose cause is `line`.
    fn dump_at(&self, cause: &str, line: Seq);
}

/// The drop waits for the dumps that are being written.
pub(crate) struct Recorder(pub(crate) Flight);

impl LineRecorder for Recorder {
    fn record_line(&self, line: &Line<'_>) -> bool {
        enter(&self.0.0.ring).record_line(line)
    }

    fn begin_segment(&self, name_lines: &mut dyn FnMut(&mut LinesInForce<'_>)) {
        enter(&self.0.0.ring).begin_with_head(name_lines);
    }

    fn dump_at(&self, cause: &str, line: Seq) {
        self.0.dump_at(cause, Some(line));
    }
}

impl Drop for Recorder {
    fn drop(&mut self) {
        // A hook may ask for another dump, which adds a writer.
        loop {
            let Some(thread) = enter(&self.0.0.writers).pop() else { break };
            // The result of a hook that has panicked is of no use.
            _ = thread.join();
        }
    }
}

/// Locks a mutex. A poisoned lock still guards whole values.
fn enter<T: ?Sized>(lock: &Mutex<T>) -> MutexGuard<'_, T> {
    lock.lock().unwrap_or_else(PoisonError::into_inner)
}

/// The first columns of a line.
#[derive(Clone, Copy, Debug, Default)]
struct Columns {
    seq: Seq,
    at: Time,
    turn: u64,
    task: u64,
}

/// A part of the ring.
struct Segment {
    /// The lines in force at the beginning. Not in `bytes`, so that any number of them fits.
    head: Vec<u8>,
    /// How many lines in force are not in `head`. `None` if no head was made.
    missing: Option<usize>,
    bytes: Box<[u8]>,
    len: usize,
    /// The number of the first line in `bytes`.
    first: Seq,
}

impl Segment {
    fn new(size: usize) -> Segment {
        // The system gives memory for the zeros page by page, as they are overwritten.
        let bytes = vec![0; size].into();
        Segment { head: Vec::new(), missing: None, bytes, len: 0, first: 0 }
    }

    fn lines(&self) -> Lines<'_> {
        Lines { bytes: &self.bytes[..self.len], last: Columns::default() }
    }

    fn head(&self) -> Lines<'_> {
        Lines { bytes: &self.head, last: Columns::default() }
    }
}

/// What the first byte of an entry says: which columns differ from the entry before, and whether
/// the entry has measured times, is a line of text, and names its task.
const SEQ: u8 = 1;
const AT: u8 = 2;
const TURN: u8 = 4;
const TASK: u8 = 8;
const TIMED: u8 = 16;
const TEXT: u8 = 32;
const NAME: u8 = 64;

/// The lines of the log in memory, and the things in force that the kernel has no record of.
struct Ring {
    size: usize,
    /// A segment that is longer than this gets a head of the next one. It leaves room for a line.
    nearly_full: usize,
    /// The full segments, the oldest first.
    full: VecDeque<Arc<Segment>>,
    /// The segment that is being written.
    current: Segment,
    last: Columns,
    words: Constants,
    header: String,
    followed: BTreeSet<(u64, Followed, Seq)>,
    /// The lines with which waits and scopes have moved.
    moved: BTreeMap<Moved, Seq>,
}

/// A thing in force, of a task, without a record in the kernel. Names are hashed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Followed {
    Span(u64),
    /// A job belongs to no task here: it may outlive its caller.
    Job(u64),
    Phase,
}

impl Ring {
    fn new(bytes: usize, header: String) -> Ring {
        let size = (bytes / SEGMENTS).max(4 * ROOM);
        let current = Segment { missing: Some(0), ..Segment::new(size) };
        let (last, words) = (Columns::default(), Constants::default());
        let (full, followed, moved) = (VecDeque::new(), BTreeSet::new(), BTreeMap::new());
        let nearly_full = size / 4 * 3;
        Ring { size, nearly_full, full, current, last, words, header, followed, moved }
    }

    /// Adds a line. Returns whether the segment is nearly full, so that the kernel must name the
    /// lines in force.
    #[inline(always)]
    fn record_line(&mut self, line: &Line<'_>) -> bool {
        let Line { at, turn, seq, task, ref name, ref event, ref timed } = *line;
        // One test for both: the segment is empty, or perhaps it is full.
        if !(1..=self.nearly_full).contains(&self.current.len) {
            self.make_room(seq, ROOM);
        }
        let Segment { bytes, len, .. } = &mut self.current;
        let bytes = bytes[*len..].first_chunk_mut().expect("there is room for a line");
        let mut out = Packed { bytes, len: LEN, seq, words: &mut self.words };
        // All later lines of the task have the name of its `spawn`.
        let given = if let Event::Spawn { .. } = event { Some(&**name) } else { None };
        let last = mem::replace(&mut self.last, Columns { seq, at, turn, task });
        put_columns(last, self.last, timed.as_ref().map_or(0, |_| TIMED), given, &mut out);
        Own.pack(event, &mut out);
        if let Some(Timed { ran, waited, late }) = timed {
            [ran, waited, late].into_iter().for_each(|span| OPTIONAL.pack(span, &mut out));
        }
        if out.len <= ROOM {
            out.bytes[..LEN].copy_from_slice(&length(out.len));
            *len += out.len;
        } else {
            self.last = last;
            self.long_line(line);
        }
        if is_followed(event) {
            self.follow(task, seq, event);
        }
        self.current.len > self.nearly_full
    }

    /// Makes room for the line `seq`, of at most `bytes` bytes.
    #[cold]
    fn make_room(&mut self, seq: Seq, bytes: usize) {
        if self.current.len + bytes > self.size {
            // The turn is not over, so no head can be made. The next one is made of this segment
            // and those before it.
            self.begin(Segment::new(0));
        }
        if self.current.len == 0 {
            (self.current.first, self.last) = (seq, Columns::default());
        }
    }

    /// Adds a line that is longer than [`ROOM`], as text. A line that is longer than a segment, or
    /// than the length of an entry can say, is left out.
    #[cold]
    fn long_line(&mut self, line: &Line<'_>) {
        let Line { at, turn, seq, task, ref name, .. } = *line;
        let mut text = Out::default();
        Own.put("", line, &mut text);
        let longest = text.0.len() + name.len() + ROOM;
        if longest > self.size.min(LONGEST) {
            return;
        }
        self.make_room(seq, longest);
        let place = Columns { seq, at, turn, task };
        let last = mem::replace(&mut self.last, place);
        let mut entry = Vec::new();
        Recorded { place, flags: TEXT, name: None, bytes: &text.0 }.put(
            last,
            Some(name),
            &mut entry,
        );
        let len = self.current.len;
        self.current.bytes[len..len + entry.len()].copy_from_slice(&entry);
        self.current.len += entry.len();
    }

    /// Freezes the current segment and begins the next one, with what `new` has beside its room.
    fn begin(&mut self, new: Segment) {
        let oldest = if self.full.len() + 1 < SEGMENTS { None } else { self.full.pop_front() };
        // A dump may still need the oldest.
        let oldest = oldest.and_then(|oldest| Arc::try_unwrap(oldest).ok());
        let bytes = oldest.map_or_else(|| vec![0; self.size].into(), |oldest| oldest.bytes);
        let full = mem::replace(&mut self.current, Segment { bytes, ..new });
        self.full.push_back(Arc::new(full));
    }

    /// Begins the next segment with a head.
    #[cold]
    fn begin_with_head(&mut self, name_lines: &mut dyn FnMut(&mut LinesInForce<'_>)) {
        let mut lines =
            LinesInForce { lines: Vec::new(), moved: &self.moved, still: BTreeMap::new() };
        name_lines(&mut lines);
        let LinesInForce { mut lines, still, .. } = lines;
        self.moved = still;
        lines.extend(self.followed.iter().map(|(_, _, seq)| *seq));
        lines.sort_unstable();
        lines.dedup();
        // A record that was made before the log has no line.
        let mut wanted = lines.into_iter().skip_while(|line| *line == 0).peekable();
        let all: Vec<_> = self.full.iter().map(|it| &**it).chain([&self.current]).collect();
        let newest = all.iter().rposition(|segment| segment.missing.is_some()).unwrap_or(0);
        let (mut new, mut last, mut missing) = (Segment::new(0), Columns::default(), 0);
        let (mut names, mut named) = (BTreeMap::new(), BTreeSet::from([0]));
        let lines = all[newest..].iter().flat_map(|segment| segment.lines());
        // Not a `for`: the loop runs inside the chained iterators, which halves its cost.
        let _ = all[newest].head().chain(lines).try_for_each(|entry| {
            let Columns { seq, task, .. } = entry.place;
            if let Some(name) = entry.name {
                names.insert(task, name);
            }
            // Nearly all lines are in front of the next wanted one.
            if *wanted.peek().ok_or(())? > seq {
                return Ok(());
            }
            while wanted.next_if(|next| *next < seq).is_some() {
                missing += 1;
            }
            if wanted.next_if_eq(&seq).is_some() {
                // The task of a line in force may have ended, and its `spawn` is then not there.
                let name = names.get(&task).filter(|_| named.insert(task)).copied();
                entry.put(mem::replace(&mut last, entry.place), name, &mut new.head);
            }
            Ok::<(), ()>(())
        });
        new.missing = Some(missing + wanted.count());
        self.begin(new);
    }

    /// Follows what has no record in the kernel that could keep the number of its line.
    #[cold]
    fn follow(&mut self, task: u64, seq: Seq, event: &Event<'_>) {
        let (of, key, begins) = match event {
            Event::Enter { name } => (task, Followed::Span(hash(name)), true),
            Event::Leave { name } => (task, Followed::Span(hash(name)), false),
            Event::Offload { job, .. }
            | Event::OffloadStarts { job, .. }
            | Event::Abandon { job } => (0, Followed::Job(*job), true),
            Event::Phase(_) => (0, Followed::Phase, true),
            Event::Done { job } | Event::Orphan { job } | Event::DropJob { job } => {
                return self.stop_following(0, Followed::Job(*job), Followed::Job(*job));
            }
            Event::Exit { .. } => {
                return self.stop_following(task, Followed::Span(0), Followed::Phase);
            }
            Event::Move { what, .. } => {
                self.moved.insert(*what, seq);
                return;
            }
            _ => return,
        };
        if begins {
            self.followed.insert((of, key, seq));
        } else if let Some(newest) = self.followed.range((of, key, 0)..=(of, key, seq)).next_back()
        {
            let newest = *newest;
            self.followed.remove(&newest);
        } else if let Followed::Span(_) = key {
            // Another task has dropped the future of the span, or has taken it over.
            let other = self.followed.iter().rfind(|(_, other, _)| *other == key).copied();
            other.map(|other| self.followed.remove(&other));
        }
    }

    /// Forgets the things of a task from one key to another.
    #[cold]
    fn stop_following(&mut self, of: u64, from: Followed, to: Followed) {
        while let Some(found) = self.followed.range((of, from, 0)..=(of, to, Seq::MAX)).next() {
            let found = *found;
            self.followed.remove(&found);
        }
    }

    fn dump(&self, cause: &str, line: Option<Seq>) -> Dump {
        let Segment { head, missing, bytes, len, first } = &self.current;
        let (head, bytes) = (head.clone(), bytes[..*len].into());
        let current = Segment { head, missing: *missing, bytes, len: *len, first: *first };
        let mut segments: Vec<_> = self.full.iter().cloned().chain([Arc::new(current)]).collect();
        let oldest = segments.iter().position(|segment| segment.missing.is_some()).unwrap_or(0);
        segments.drain(..oldest);
        let (header, words) = (self.header.clone(), self.words.all.clone());
        let line = line.unwrap_or(self.last.seq);
        Dump { header, cause: word(cause).into_owned(), line, words, segments }
    }
}

/// The form of a measured time.
const OPTIONAL: Opt<Own> = Opt(Own);

/// Returns whether an event begins or ends a thing that the recorder follows.
#[inline]
fn is_followed(event: &Event<'_>) -> bool {
    matches!(
        event,
        Event::Enter { .. }
            | Event::Leave { .. }
            | Event::Move { .. }
            | Event::Offload { .. }
            | Event::OffloadStarts { .. }
            | Event::Done { .. }
            | Event::Abandon { .. }
            | Event::Orphan { .. }
            | Event::DropJob { .. }
            | Event::Phase(_)
            | Event::Exit { .. }
    )
}

fn hash(name: &str) -> u64 {
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    hasher.finish()
}

/// The lines in force at the beginning of a segment.
pub(crate) struct LinesInForce<'r> {
    lines: Vec<Seq>,
    moved: &'r BTreeMap<Moved, Seq>,
    /// The entries of `moved` whose wait or scope still exists.
    still: BTreeMap<Moved, Seq>,
}

impl LinesInForce<'_> {
    /// Adds a line, or nothing if the number is 0.
    pub(super) fn add(&mut self, line: Seq) {
        self.lines.push(line);
    }

    /// Adds the line with which this wait or scope has moved, if it has.
    pub(super) fn add_move(&mut self, what: Moved) {
        if let Some(line) = self.moved.get(&what) {
            self.lines.push(*line);
            self.still.insert(what, *line);
        }
    }
}

/// The packed lines of a head or a segment.
struct Lines<'p> {
    bytes: &'p [u8],
    last: Columns,
}

/// A packed line: its first columns, what its first byte says, the name of its task if it names it,
/// and the rest.
struct Recorded<'p> {
    place: Columns,
    flags: u8,
    name: Option<&'p str>,
    bytes: &'p [u8],
}

/// The bytes of the length of an entry.
const LEN: usize = 3;

/// The longest entry whose length fits into [`LEN`] bytes.
const LONGEST: usize = (1 << (8 * LEN)) - 1;

/// Writes the first byte of an entry, the columns that differ from those of the line before, and
/// the name.
#[inline(always)]
fn put_columns(
    last: Columns,
    place: Columns,
    mut flags: u8,
    name: Option<&str>,
    out: &mut Packed<'_>,
) {
    let at = out.len;
    out.len += 1;
    if place.seq != last.seq + 1 {
        flags |= SEQ;
        out.number(place.seq - last.seq);
    }
    if place.at != last.at {
        flags |= AT;
        out.number(place.at.as_micros() - last.at.as_micros());
    }
    if place.turn != last.turn {
        flags |= TURN;
        out.number(place.turn - last.turn);
    }
    if place.task != last.task {
        flags |= TASK;
        out.number(place.task);
    }
    if let Some(name) = name {
        flags |= NAME;
        out.text(name);
    }
    out.bytes[at] = flags;
}

impl<'p> Iterator for Lines<'p> {
    type Item = Recorded<'p>;

    fn next(&mut self) -> Option<Recorded<'p>> {
        let [a, b, c] = *self.bytes.first_chunk::<LEN>()?;
        let (entry, rest) = self.bytes.split_at(u32::from_le_bytes([a, b, c, 0]) as usize);
        self.bytes = rest;
        let mut from = Unpack { bytes: &entry[LEN..], seq: 0, words: &[] };
        let (flags, last) = (from.byte(), &mut self.last);
        last.seq += if flags & SEQ != 0 { from.number() } else { 1 };
        if flags & AT != 0 {
            last.at = Time::from_micros(last.at.as_micros() + from.number());
        }
        if flags & TURN != 0 {
            last.turn += from.number();
        }
        if flags & TASK != 0 {
            last.task = from.number();
        }
        let name = if flags & NAME != 0 { Some(from.text()) } else { None };
        Some(Recorded { place: *last, flags, name, bytes: from.bytes })
    }
}

impl Recorded<'_> {
    /// Appends the line to a head, behind the line at `last`.
    fn put(&self, last: Columns, name: Option<&str>, head: &mut Vec<u8>) {
        let mut columns = [0; ROOM];
        let (seq, words) = (self.place.seq, &mut Constants::default());
        let mut out = Packed { bytes: &mut columns, len: LEN, seq, words };
        let mut flags = self.flags & (TIMED | TEXT);
        if name.is_some() {
            flags |= NAME;
        }
        put_columns(last, self.place, flags, None, &mut out);
        // The name may be longer than the room, so only its length goes there.
        let name = name.unwrap_or_default();
        if flags & NAME != 0 {
            out.number(name.len() as u64);
        }
        let len = out.len;
        columns[..LEN].copy_from_slice(&length(len + name.len() + self.bytes.len()));
        head.extend_from_slice(&columns[..len]);
        head.extend_from_slice(name.as_bytes());
        head.extend_from_slice(self.bytes);
    }

    /// Writes the line as text. `names` are those of the tasks in the lines so far.
    fn text(&self, words: &[&'static str], names: &mut BTreeMap<u64, String>, out: &mut Out) {
        let Columns { seq, at, turn, task } = self.place;
        names.extend(self.name.map(|name| (task, name.to_owned())));
        if self.flags & TEXT != 0 {
            return out.0.extend_from_slice(self.bytes);
        }
        let mut from = Unpack { bytes: self.bytes, seq, words };
        let event: Event<'_> = Own.take(&mut from);
        let timed = (self.flags & TIMED != 0).then(|| {
            let [ran, waited, late] = [(); 3].map(|()| OPTIONAL.take(&mut from));
            Timed { ran, waited, late }
        });
        let name = names.get(&task).map_or("_", |name| name).into();
        Own.put("", &Line { at, turn, seq, task, name, event, timed }, out);
    }
}

fn length(len: usize) -> [u8; LEN] {
    let [a, b, c, _] = (len as u32).to_le_bytes();
    [a, b, c]
}

/// The last lines of a log, with the lines that were in force before them.
pub struct Dump {
    header: String,
    cause: String,
    line: Seq,
    words: Vec<&'static str>,
    segments: Vec<Arc<Segment>>,
}

impl Dump {
    /// Returns the reason for the dump, as one word.
    #[must_use]
    pub fn cause(&self) -> &str {
        &self.cause
    }

    /// Returns the number of the first line that is not in the head: from there on, the dump has
    /// every line.
    #[must_use]
    pub fn first_line(&self) -> Seq {
        let oldest = &self.segments[0];
        if oldest.len == 0 { self.line + 1 } else { oldest.first }
    }

    /// Returns the number of the line of the cause, or of the last line.
    #[must_use]
    pub fn line(&self) -> Seq {
        self.line
    }

    /// Writes the dump as text: a log with a remark `# flight` (see [`trace`](crate::trace)).
    ///
    /// # Errors
    ///
    /// Returns an error if `out` fails.
    pub fn write_to(&self, out: &mut impl io::Write) -> io::Result<()> {
        let Dump { header, cause, line, words, segments } = self;
        let oldest = &segments[0];
        let from = self.first_line();
        let mut text = Out::default();
        text.text(&format!("{header}\n# flight from=#{from:04} cause={cause} at=#{line:04}"));
        match oldest.missing {
            Some(0) => {}
            Some(missing) => text.text(&format!(" missing={missing}")),
            None => text.text(" missing=all"),
        }
        text.text("\n");
        let mut names = BTreeMap::from([(0, "kernel".to_owned())]);
        for entry in oldest.head().chain(segments.iter().flat_map(|segment| segment.lines())) {
            entry.text(words, &mut names, &mut text);
            text.text("\n");
            if text.0.len() > 1 << 16 {
                out.write_all(&text.0)?;
                text.0.clear();
            }
        }
        out.write_all(&text.0)?;
        out.flush()
    }
}

/// Prints the text of [`Dump::write_to`].
impl fmt::Display for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut text = Vec::new();
        self.write_to(&mut text).map_err(|_| fmt::Error)?;
        f.write_str(&String::from_utf8_lossy(&text))
    }
}

impl fmt::Debug for Dump {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Dump").field("cause", &self.cause).finish_non_exhaustive()
    }
}
