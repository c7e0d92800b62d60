//! The record/replay boundary: every system call whose result the program can observe is made here.
//!
//! Each function here first consults the tape of the thread. Without a tape it makes the system
//! call. With a tape that records, it also writes down the result of the call, the bytes that were
//! read, and a hash of the bytes that were sent. With a tape that plays, it makes no system call,
//! because the record has the result. Then no descriptor exists either, and a [`Handle`] is empty.
//! So a system call made elsewhere fails with `EBADF`, and changes nothing.

use std::cell::RefCell;
use std::ffi::OsStr;
use std::fmt;
use std::io::{self, IoSlice};
use std::net::SocketAddr;
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, OwnedFd};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;

use rustix::io::Errno;
use rustix::net::{SocketAddrAny, SocketAddrUnix};
use traps::internal::tape::{self, Answer, Words, escaped, input, unescaped};
use traps::io::{Descriptor, Source};

use crate::system;

/// The result of an attempt: `None` if the operation would block.
pub(crate) type TryIo<T> = Option<io::Result<T>>;

/// The number of sent bytes that a report shows.
const MOST_SHOWN: usize = 100;

/// An owned descriptor, or none while a record is played. `KIND` is the letter of its alias in the
/// log.
pub(crate) struct Handle<const KIND: char = 'f'>(Option<OwnedFd>);

impl<const KIND: char> Handle<KIND> {
    pub(crate) const EMPTY: Handle<KIND> = Handle(None);

    /// Returns the descriptor, for a system call.
    ///
    /// # Errors
    ///
    /// Returns `EBADF` if a record is or was played.
    #[inline(always)]
    pub(crate) fn get(&self) -> Result<BorrowedFd<'_>, Errno> {
        self.0.as_ref().map(AsFd::as_fd).ok_or(Errno::BADF)
    }
}

impl<const KIND: char, D: Into<OwnedFd>> From<D> for Handle<KIND> {
    fn from(descriptor: D) -> Handle<KIND> {
        Handle(Some(descriptor.into()))
    }
}

impl<const KIND: char> fmt::Debug for Handle<KIND> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.0)
    }
}

impl<const KIND: char> Source for Handle<KIND> {
    fn descriptor(&self) -> Descriptor {
        Descriptor::Real(self.0.as_ref().map_or(-1, AsRawFd::as_raw_fd))
    }
    fn kind(&self) -> char {
        KIND
    }
    fn into_owner(self) -> Option<OwnedFd> {
        self.0
    }
}

/// A value that a record can have.
pub(crate) trait Recorded {
    fn put(&self, words: &mut Words);
    fn get(answer: &mut Answer<'_>) -> Self;
}

impl<const KIND: char> Recorded for Handle<KIND> {
    fn put(&self, _: &mut Words) {}
    fn get(_: &mut Answer<'_>) -> Handle<KIND> {
        Handle::EMPTY
    }
}

impl Recorded for () {
    fn put(&self, _: &mut Words) {}
    fn get(_: &mut Answer<'_>) {}
}

impl Recorded for u64 {
    fn put(&self, words: &mut Words) {
        words.number(*self);
    }
    fn get(answer: &mut Answer<'_>) -> u64 {
        answer.number()
    }
}

impl Recorded for bool {
    fn put(&self, words: &mut Words) {
        words.number(u64::from(*self));
    }
    fn get(answer: &mut Answer<'_>) -> bool {
        answer.number() != 0
    }
}

impl<A: Recorded, B: Recorded> Recorded for (A, B) {
    fn put(&self, words: &mut Words) {
        self.0.put(words);
        self.1.put(words);
    }
    fn get(answer: &mut Answer<'_>) -> (A, B) {
        (A::get(answer), B::get(answer))
    }
}

impl<T: Recorded> Recorded for Option<T> {
    fn put(&self, words: &mut Words) {
        match self {
            None => words.word("none"),
            Some(value) => value.put(words),
        }
    }
    fn get(answer: &mut Answer<'_>) -> Option<T> {
        if answer.next_if("none") { None } else { Some(T::get(answer)) }
    }
}

impl<T: Recorded, const N: usize> Recorded for [T; N] {
    fn put(&self, words: &mut Words) {
        self.iter().for_each(|value| value.put(words));
    }
    fn get(answer: &mut Answer<'_>) -> [T; N] {
        std::array::from_fn(|_| T::get(answer))
    }
}

impl<T: Recorded> Recorded for Vec<T> {
    fn put(&self, words: &mut Words) {
        self.iter().for_each(|value| value.put(words));
    }
    fn get(answer: &mut Answer<'_>) -> Vec<T> {
        let mut values = Vec::new();
        while !answer.is_empty() {
            values.push(T::get(answer));
        }
        values
    }
}

impl Recorded for SocketAddr {
    fn put(&self, words: &mut Words) {
        words.word(&self.to_string());
    }
    fn get(answer: &mut Answer<'_>) -> SocketAddr {
        let none = SocketAddr::from(([0; 4], 0));
        answer.word().parse().unwrap_or_else(|_| (answer.wrong::<()>(), none).1)
    }
}

/// An IP address, or `unix:` and the name of a Unix address, as in sockaddr_un: a path, a zero and
/// an abstract name, or nothing.
impl Recorded for SocketAddrAny {
    fn put(&self, words: &mut Words) {
        if let Ok(address) = SocketAddr::try_from(self.clone()) {
            return address.put(words);
        }
        let name = system::named(self).and_then(|unix| {
            #[cfg(target_os = "linux")]
            if let Some(name) = unix.abstract_name() {
                return Some([b"\0", name].concat());
            }
            unix.path_bytes()?.split(|byte| *byte == 0).next().map(<[u8]>::to_vec)
        });
        words.word(&format!("unix:{}", escaped(&name.unwrap_or_default())));
    }
    fn get(answer: &mut Answer<'_>) -> SocketAddrAny {
        let word = answer.word();
        if let Ok(address) = word.parse::<SocketAddr>() {
            return address.into();
        }
        #[cfg(target_os = "linux")]
        let unnamed = SocketAddrUnix::new_unnamed();
        #[cfg(not(target_os = "linux"))]
        let unnamed = SocketAddrUnix::new("").expect("an empty path is short");
        let Some(name) = word.strip_prefix("unix:") else {
            return (answer.wrong::<()>(), unnamed.into()).1;
        };
        let name = unescaped(name.as_bytes());
        system::address(Path::new(OsStr::from_bytes(&name))).unwrap_or(unnamed).into()
    }
}

/// Makes a system call that does not block.
pub(crate) fn call<T: Recorded>(
    kind: &'static str,
    live: impl FnOnce() -> io::Result<T>,
) -> io::Result<T> {
    input(kind, live, |done, words| words.result(done, T::put), |answer| answer.result(T::get))
}

/// Makes an attempt that returns `None` if it would block.
pub(crate) fn try_io<T: Recorded>(kind: &'static str, live: impl FnOnce() -> TryIo<T>) -> TryIo<T> {
    try_io_with(kind, live, T::put, T::get)
}

fn try_io_with<T>(
    kind: &'static str,
    live: impl FnOnce() -> TryIo<T>,
    put: impl FnOnce(&T, &mut Words),
    get: impl FnOnce(&mut Answer<'_>) -> T,
) -> TryIo<T> {
    let put = |done: &TryIo<T>, words: &mut Words| match done {
        None => words.word("wait"),
        Some(done) => words.result(done, put),
    };
    input(kind, live, put, |answer| (!answer.next_if("wait")).then(|| answer.result(get)))
}

/// Makes an attempt that reads into `buf`, and returns the number of bytes with another value.
pub(crate) fn received<T: Recorded>(
    kind: &'static str,
    buf: &mut [u8],
    live: impl FnOnce(&mut [u8]) -> TryIo<(usize, T)>,
) -> TryIo<(usize, T)> {
    let buf = RefCell::new(buf);
    let live = || live(&mut buf.borrow_mut());
    let put = |(n, more): &(usize, T), words: &mut Words| {
        more.put(words);
        words.number(*n as u64);
        words.bytes(&buf.borrow()[..*n]);
    };
    let get = |answer: &mut Answer<'_>| {
        let (more, n, bytes) = (T::get(answer), answer.parsed(), answer.bytes());
        let mut buf = buf.borrow_mut();
        match buf.get_mut(..n) {
            Some(buf) if n == bytes.len() => buf.copy_from_slice(&bytes),
            _ => {
                let how = format!("the program asks for `{kind}` with less room");
                tape::differ(&how, &format!("the record has {n} bytes, and {} fit", buf.len()));
            }
        }
        // The run continues up to the next line of its log.
        (n.min(buf.len()), more)
    };
    try_io_with(kind, live, put, get)
}

/// Makes an attempt that reads into `buf`.
pub(crate) fn read(buf: &mut [u8], live: impl FnOnce(&mut [u8]) -> TryIo<usize>) -> TryIo<usize> {
    let live = |buf: &mut [u8]| live(buf).map(|done| done.map(|n| (n, ())));
    received("read", buf, live).map(|done| done.map(|(n, ())| n))
}

/// Makes an attempt that sends `slices`.
pub(crate) fn sent(slices: &[IoSlice<'_>], live: impl FnOnce() -> TryIo<usize>) -> TryIo<usize> {
    let hash = |n: usize| match slices {
        [one] => tape::hash(&one[..n.min(one.len())]),
        several => {
            let mut all: Vec<u8> = several.iter().flat_map(|slice| slice.iter().copied()).collect();
            all.truncate(n);
            tape::hash(&all)
        }
    };
    let put = |n: &usize, words: &mut Words| {
        words.number(*n as u64);
        words.number(hash(*n));
    };
    let get = |answer: &mut Answer<'_>| {
        let (n, recorded) = (answer.parsed(), answer.number());
        let all = slices.iter().map(|slice| slice.len()).sum::<usize>();
        if n > all || recorded != hash(n) {
            let bytes = slices.iter().flat_map(|slice| slice.iter().copied());
            let bytes: Vec<u8> = bytes.take(MOST_SHOWN).collect();
            tape::differ("the program sends other bytes", &bytes.escape_ascii().to_string());
        }
        n.min(all)
    };
    try_io_with("send", live, put, get)
}

/// Takes the result of a job that sent bytes of a file, which the program does not see: `asked`
/// bytes from `at`. The record has only these numbers, and how many bytes were sent.
pub(crate) fn sent_file(
    (at, asked): (u64, usize),
    live: impl FnOnce() -> io::Result<usize>,
) -> io::Result<usize> {
    let put = |n: &usize, words: &mut Words| {
        [*n as u64, at, asked as u64].into_iter().for_each(|number| words.number(number));
    };
    let get = |answer: &mut Answer<'_>| {
        let (n, recorded) = (answer.parsed::<usize>(), (answer.number(), answer.parsed()));
        if n > asked || recorded != (at, asked) {
            let part = format!("{asked} bytes from byte {at}");
            tape::differ("the program sends another part of a file", &part);
        }
        n.min(asked)
    };
    input("sendfile", live, |done, words| words.result(done, put), |answer| answer.result(get))
}

#[cfg(test)]
mod tests {
    use std::io::Cursor;
    use std::rc::Rc;

    use super::*;

    /// A file in memory.
    #[derive(Clone, Default)]
    struct File(Rc<RefCell<Vec<u8>>>);

    impl io::Write for File {
        fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
            self.0.borrow_mut().write(bytes)
        }
        fn flush(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// Records what `run` does, and runs it again.
    fn twice<T>(run: impl Fn() -> T) -> (T, T, String) {
        let file = File::default();
        tape::record(Box::new(file.clone()), 1 << 20, String::new());
        let first = run();
        tape::end().unwrap();
        let bytes = file.0.take();
        tape::play(Box::new(Cursor::new(bytes.clone())));
        let second = run();
        assert!(tape::stopped().is_none(), "{:?}", tape::stopped());
        tape::end().unwrap();
        (first, second, String::from_utf8(bytes).unwrap())
    }

    #[cfg(target_os = "linux")]
    #[test]
    fn addresses_of_all_families_come_back() {
        let unix = |name: &[u8]| system::address(Path::new(OsStr::from_bytes(name))).unwrap();
        let inet = |text: &str| SocketAddrAny::from(text.parse::<SocketAddr>().unwrap());
        let addresses: [SocketAddrAny; 5] = [
            inet("127.0.0.1:80"),
            inet("[fe80::1%3]:80"),
            SocketAddrUnix::new_unnamed().into(),
            unix(b"/tmp/a b\n").into(),
            unix(b"\0abstract \\").into(),
        ];
        for address in addresses {
            let found = || Ok((7, Some(address.clone())));
            let call = || call("peer", found).unwrap();
            let (first, second, text) = twice(call);
            assert!(first == second && first.1 == Some(address.clone()), "{text}");
        }
    }

    #[test]
    fn a_part_of_a_file_comes_back_as_a_number_and_another_part_differs() {
        let (first, second, text) = twice(|| sent_file((5, 10), || Ok(7)).unwrap());
        assert_eq!((first, second), (7, 7));
        assert!(text.starts_with("<sendfile ok 7 5 10\n"), "{text}");
        for part in [(6, 10), (5, 11), (5, 6)] {
            tape::play(Box::new(Cursor::new(text.clone().into_bytes())));
            sent_file(part, || unreachable!("it is played")).unwrap();
            assert!(tape::stopped().is_some(), "{part:?}");
            tape::end().ok();
        }
    }

    #[test]
    fn what_would_block_and_what_was_read_come_back_without_a_descriptor() {
        let attempts = RefCell::new(Vec::new());
        let run = || {
            attempts.replace(vec![Some(Ok(3)), None, Some(Err(io::Error::from_raw_os_error(104)))]);
            let mut all = Vec::new();
            for _ in 0..3 {
                let mut buf = [0; 5];
                let done = read(&mut buf, |buf| {
                    buf[..3].copy_from_slice(b"\0\xff\n");
                    attempts.borrow_mut().pop().unwrap()
                });
                all.push(format!("{done:?} {:?}", done.as_ref().map(|_| buf)));
            }
            let handle = try_io("accept", || Some(Ok(Handle::<'c'>::EMPTY)));
            all.push(format!("{:?}", handle.unwrap().unwrap().get().map(|_| ())));
            all
        };
        let (first, second, text) = twice(run);
        // A live attempt that fails leaves bytes in the buffer; a replayed one leaves none.
        assert_eq!((&first[1], &first[2..]), (&second[1], &second[2..]), "{text}");
        assert_eq!(first[2], "Some(Ok(3)) Some([0, 255, 10, 0, 0])");
        assert!(
            text.starts_with(
                "<read error 104 Connection reset by peer (os error 104)\n<read wait\n"
            )
        );
    }
}
