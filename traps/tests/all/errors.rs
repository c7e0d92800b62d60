//! Interrupts inside other error types: every timeout on the way up still knows its own.

use std::error::Error;
use std::fmt;
use std::io::{self, ErrorKind};
use std::time::Duration;

use kernel::Sim;
use support::{check_quietly, short_kind, tenths};
use traps::{Interrupt, Interruptible, Kind, sleep, spawn, timeout_after};

async fn op() -> Result<(), Interrupt> {
    sleep(Duration::from_secs(9)).await.map(|_| ())
}

/// Returns the results of three timeouts around `op`, 0.5 s, 0.4 s and 0.7 s, in any error type.
async fn nested<E: Interruptible>() -> (String, E) {
    let told = support::Notes::default();
    let tell = |error: &E| told.add(error.interrupt().map_or("-", |why| short_kind(why.kind())));
    let outer = timeout_after(tenths(5), async {
        let middle = timeout_after(tenths(4), async {
            let inner = async { op().await.map_err(E::from) };
            timeout_after(tenths(7), inner).await.inspect_err(tell)
        });
        middle.await.inspect_err(tell)
    });
    let error = outer.await.inspect_err(tell).unwrap_err();
    (told.text(), error)
}

#[derive(Debug)]
enum AppError {
    Interrupted(Interrupt),
    #[expect(dead_code, reason = "an application has errors of its own")]
    Missing,
}

impl fmt::Display for AppError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

impl Error for AppError {}

impl From<Interrupt> for AppError {
    fn from(interrupt: Interrupt) -> AppError {
        AppError::Interrupted(interrupt)
    }
}

impl Interruptible for AppError {
    fn interrupt(&self) -> Option<&Interrupt> {
        match self {
            AppError::Interrupted(interrupt) => Some(interrupt),
            AppError::Missing => None,
        }
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        match self {
            AppError::Interrupted(interrupt) => Some(interrupt),
            AppError::Missing => None,
        }
    }
}

#[test]
fn each_error_type_carries_the_interrupt_through_nested_timeouts() {
    check_quietly("errors", Sim::new(), async {
        assert_eq!(nested::<Interrupt>().await.0, "TCE TT UTE");
        assert_eq!(nested::<traps::Error>().await.0, "TCE TT UTE");
        assert_eq!(nested::<io::Error>().await.0, "TCE TT UTE");
        assert_eq!(nested::<Box<dyn Error>>().await.0, "TCE TT UTE");
        assert_eq!(nested::<Box<dyn Error + Send + Sync>>().await.0, "TCE TT UTE");
        assert_eq!(nested::<AppError>().await.0, "TCE TT UTE");
    });
}

#[test]
fn an_io_error_of_an_interrupt_has_a_kind_that_no_loop_swallows() {
    check_quietly("io_kinds", Sim::new(), async {
        let (_, timeout) = nested::<io::Error>().await;
        assert_eq!(timeout.kind(), ErrorKind::TimedOut);
        let mut victim = spawn("victim", async { op().await.map_err(io::Error::from) }).await;
        traps::yield_now().await.unwrap();
        victim.cancel_now("no longer wanted");
        let cancelled = victim.join().await.unwrap().unwrap_err();
        assert_eq!(cancelled.kind(), ErrorKind::Other);
        assert_eq!(cancelled.interrupt().unwrap().reason(), "no longer wanted");
    });
}

#[test]
fn an_interrupt_has_the_deadline_the_place_where_it_was_set_and_the_time_of_delivery() {
    check_quietly("what_it_says", Sim::new(), async {
        let (line, timeout) = (line!(), timeout_after(tenths(3), op()));
        let why = timeout.await.unwrap_err();
        assert_eq!(why.kind(), Kind::TaskTimeout);
        assert_eq!(why.deadline().unwrap().as_micros(), 300_000);
        assert_eq!(why.reading().as_micros(), 300_000);
        let set_at = why.set_at().unwrap();
        assert_eq!((set_at.file(), set_at.line()), (file!(), line));
        let text = why.to_string();
        assert!(text.contains("0.300000") && text.contains(set_at.file()), "{text}");
    });
}

#[test]
fn a_box_carries_the_interrupt_of_a_join_a_thread_and_a_group() {
    type Boxed = Box<dyn Error>;
    check_quietly("boxed", Sim::new(), async {
        let join = timeout_after(tenths(1), async {
            let mut child = spawn("child", op()).await;
            let joined = child.join().await;
            child.cancel_now("");
            Ok::<_, Boxed>(joined?)
        });
        assert!(join.await.unwrap_err().interrupt().is_some());
        let group = timeout_after(tenths(1), async {
            let mut group = traps::TaskGroup::<(), io::Error>::new();
            group.spawn("member", async { Ok(op().await.map(drop)?) }).await;
            Ok::<_, Boxed>(group.join().await?)
        });
        let group = group.await.unwrap_err();
        assert_eq!(group.interrupt().unwrap().kind(), Kind::TaskTimeout);
        // A box in an io::Error works, too.
        let other = io::Error::other(traps::Error::Interrupt(
            timeout_after(tenths(1), op()).await.unwrap_err(),
        ));
        assert_eq!(other.interrupt().unwrap().kind(), Kind::TaskTimeout);
    });
}

#[test]
fn errors_are_equal_by_variant_and_text_and_system_errors_by_kind() {
    use traps::Error::{Busy, Closed, Io, Panicked};
    assert_eq!(Busy, Busy);
    assert_ne!(Busy, Closed);
    assert_ne!(Panicked("one".into()), Panicked("two".into()));
    assert_eq!(Io(io::Error::other("one")), Io(io::Error::other("two")), "by kind");
    assert_ne!(Io(io::Error::other("one")), Io(ErrorKind::TimedOut.into()));
    let closed = io::Error::from(Closed);
    assert_eq!(closed.get_ref().and_then(|it| it.downcast_ref()), Some(&Closed));
}
