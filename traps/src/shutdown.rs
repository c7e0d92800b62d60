//! The end of a kernel as its tasks see it: whether it has begun, and who is not done yet.
//!
//! A shutdown goes through phases: at the *gate* the flag is set and who waits for it is woken;
//! the *drain* lasts until every [`Hold`] is dropped, or too long; then all that is left is
//! cancelled, awaited and dropped. A server that ends well: its accept loop ends by
//! [`until_begun`], each connection takes a [`hold`] and waits for its next request by
//! [`until_begun`] too.
//!
//! Decides nothing: the phases are the kernel's.

use std::cell::{Cell, RefCell};
use std::mem::{self, ManuallyDrop};
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, Waker};

use pin_project_lite::pin_project;

use crate::gate;
use crate::interrupt::Interrupt;
use crate::protocol::{QueueCore, Site, TaskRef};
use crate::queue::{Wait, WaitQueue};

thread_local! {
    /// That of the kernel that runs on this thread. Never dropped, so that a kernel may run while
    /// its thread ends: whoever enters it leaves it.
    static CURRENT: RefCell<ManuallyDrop<Option<Rc<Closing>>>> =
        const { RefCell::new(ManuallyDrop::new(None)) };
    /// Its flag, to be read without a borrow.
    static BEGUN: Cell<bool> = const { Cell::new(false) };
}

fn current() -> Option<Rc<Closing>> {
    CURRENT.with_borrow(|current| Option::clone(current))
}

// ---- What tasks use --------------------------------------------------------------------------

/// Whether the shutdown of the kernel that runs here has begun. *Answers*, without a trap; false
/// outside a kernel. A few instructions: it may be asked for each request.
#[inline]
#[must_use]
pub fn has_begun() -> bool {
    BEGUN.get()
}

/// Waits until the shutdown begins. *Blocks*; *answers*, without a trap, if it has begun.
///
/// # Errors
///
/// The interrupt that ended the wait.
#[track_caller]
pub fn begun() -> Begun {
    Begun { wait: None, site: Location::caller() }
}

/// Says that something is to be finished before the kernel cancels its tasks: the drain lasts until
/// every hold is dropped, but no longer than the kernel's option for it says. *Answers*, without a
/// trap; may be taken after the shutdown has begun. Outside a kernel it holds nothing.
#[must_use = "a hold that is dropped holds nothing"]
pub fn hold() -> Hold {
    let closing = current();
    if let Some(closing) = &closing {
        closing.holds.set(closing.holds.get() + 1);
    }
    Hold(closing)
}

/// As many [`hold`]s as its owner says, in one place: for a server whose connections share what
/// they need. None yet. *Answers*, without a trap.
#[must_use = "holds that are dropped hold nothing"]
pub fn holds() -> Holds {
    Holds { closing: current(), count: Cell::new(0) }
}

/// Runs `wait`, but no longer than until the shutdown begins: then `None`, and `wait` is given up,
/// which is to have done nothing, as a trap that is withdrawn. A value that is there wins. *Blocks*
/// as `wait` does, but not once the shutdown has begun: then `wait` is polled once. Has no error of
/// its own. Outside a kernel it is just `wait`.
///
/// Costs no trap and, once there were so many at a time, no allocation: it is for waits that are
/// made again and again, such as that for the next request. The task is woken at the gate.
///
/// ```no_run
/// # async fn example() -> Result<(), traps::Interrupt> {
/// use std::time::Duration;
/// use traps::{shutdown, sleep};
///
/// // Every minute until the kernel ends.
/// while shutdown::until_begun(sleep(Duration::from_secs(60))).await.transpose()?.is_some() {
///     println!("a minute");
/// }
/// # Ok(())
/// # }
/// ```
pub fn until_begun<F: Future>(wait: F) -> UntilBegun<F> {
    UntilBegun { wait, seat: Seat { closing: None, place: 0 } }
}

/// The future of [`begun`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made"]
pub struct Begun {
    wait: Option<Wait>,
    site: Site,
}

impl Future for Begun {
    type Output = Result<(), Interrupt>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let Begun { wait, site } = &mut *self;
        let Some(closing) = current() else { gate::refuse_outside_a_task(site) };
        let waiting = match wait {
            Some(wait) if wait.is_in(&closing.line) => wait,
            _ if closing.has_begun() => return Poll::Ready(Ok(())),
            // The first time, or the first in this kernel.
            wait => wait.insert(closing.line.wait_at(site)),
        };
        Pin::new(waiting).poll(cx)
    }
}

/// Keeps the drain of a shutdown going; see [`hold`]. Belongs to its thread.
#[derive(Debug)]
#[must_use = "a hold that is dropped holds nothing"]
pub struct Hold(Option<Rc<Closing>>);

impl Drop for Hold {
    fn drop(&mut self) {
        if let Some(closing) = &self.0 {
            closing.holds.set(closing.holds.get() - 1);
        }
    }
}

/// Keeps the drain of a shutdown going while it counts any; see [`holds`]. Belongs to its thread.
#[derive(Debug)]
#[must_use = "holds that are dropped hold nothing"]
pub struct Holds {
    closing: Option<Rc<Closing>>,
    count: Cell<u64>,
}

impl Holds {
    /// One more. A few instructions.
    #[inline]
    pub fn add(&self) {
        self.count.set(self.count.get() + 1);
        if let Some(closing) = &self.closing {
            closing.holds.set(closing.holds.get() + 1);
        }
    }

    /// One less.
    ///
    /// # Panics
    ///
    /// Where there is none left.
    #[inline]
    pub fn give_back(&self) {
        let rule = "rule: a hold is given back once";
        self.count.set(self.count.get().checked_sub(1).expect(rule));
        if let Some(closing) = &self.closing {
            closing.holds.set(closing.holds.get() - 1);
        }
    }
}

impl Drop for Holds {
    fn drop(&mut self) {
        if let Some(closing) = &self.closing {
            closing.holds.set(closing.holds.get() - self.count.get());
        }
    }
}

pin_project! {
    /// The future of [`until_begun`].
    #[derive(Debug)]
    #[must_use = "futures do nothing unless awaited"]
    pub struct UntilBegun<F> {
        #[pin]
        wait: F,
        seat: Seat,
    }
}

impl<F: Future> Future for UntilBegun<F> {
    type Output = Option<F::Output>;

    #[inline]
    fn poll(self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Option<F::Output>> {
        let this = self.project();
        if let Poll::Ready(value) = this.wait.poll(cx) {
            this.seat.leave();
            return Poll::Ready(Some(value));
        }
        if has_begun() {
            this.seat.leave();
            return Poll::Ready(None);
        }
        this.seat.take(cx);
        Poll::Pending
    }
}

/// A place among those who are woken at the gate; given back when dropped.
#[derive(Debug)]
struct Seat {
    closing: Option<Rc<Closing>>,
    place: u32,
}

impl Seat {
    /// Whoever polls now is the one to be woken.
    fn take(&mut self, cx: &Context<'_>) {
        let Some((task, own)) = gate::polled_by(cx.waker()) else { return };
        let Some(here) = current() else { return };
        if !self.closing.as_ref().is_some_and(|closing| Rc::ptr_eq(closing, &here)) {
            // The first time, or the first in this kernel.
            self.leave();
            self.place = here.reserve();
            self.closing = Some(here);
        }
        let Some(closing) = &self.closing else { return };
        let watcher = Watcher { task, waker: if own { None } else { Some(cx.waker().clone()) } };
        let earlier = closing.seats.borrow_mut().taken[self.place as usize].replace(watcher);
        drop(earlier);
    }

    #[inline]
    fn leave(&mut self) {
        if let Some(closing) = self.closing.take() {
            closing.free(self.place);
        }
    }
}

impl Drop for Seat {
    fn drop(&mut self) {
        self.leave();
    }
}

// ---- What the kernel uses --------------------------------------------------------------------

/// What a kernel and its tasks share of its shutdown. One for each kernel; tasks reach it through
/// the functions of this module, the methods are for the kernel.
#[derive(Debug, Default)]
pub struct Closing {
    begun: Cell<bool>,
    holds: Cell<u64>,
    line: WaitQueue,
    seats: RefCell<Seats>,
}

/// Who is to be woken at the gate.
#[derive(Debug)]
pub struct Watcher {
    /// By its own waker, if there is no other.
    pub task: TaskRef,
    /// That of a combinator in it.
    pub waker: Option<Waker>,
}

#[derive(Debug, Default)]
struct Seats {
    taken: Vec<Option<Watcher>>,
    free: Vec<u32>,
}

impl Closing {
    /// Makes it the one of this thread, while its kernel runs.
    pub fn enter(self: &Rc<Closing>) {
        Closing::replace(Some(self.clone()));
        BEGUN.set(self.begun.get());
    }

    /// Its kernel stops running.
    pub fn leave() {
        BEGUN.set(false);
        Closing::replace(None);
    }

    fn replace(closing: Option<Rc<Closing>>) {
        let before = CURRENT.replace(ManuallyDrop::new(closing));
        drop(ManuallyDrop::into_inner(before));
    }

    /// Sets the flag; gives those who are to be woken, by their places. Who waits in the
    /// [line](Closing::line) is the caller's matter too.
    pub fn begin(&self) -> Vec<Watcher> {
        self.begun.set(true);
        if current().is_some_and(|closing| std::ptr::eq(&*closing, self)) {
            BEGUN.set(true);
        }
        let seats = &mut *self.seats.borrow_mut();
        seats.taken.iter_mut().filter_map(Option::take).collect()
    }

    /// Whether it has begun.
    #[must_use]
    pub fn has_begun(&self) -> bool {
        self.begun.get()
    }

    /// How many holds there are.
    #[must_use]
    pub fn holds(&self) -> u64 {
        self.holds.get()
    }

    /// Where [`begun`] waits.
    #[must_use]
    pub fn line(&self) -> &Rc<QueueCore> {
        self.line.core()
    }

    fn reserve(&self) -> u32 {
        let seats = &mut *self.seats.borrow_mut();
        seats.free.pop().unwrap_or_else(|| {
            seats.taken.push(None);
            u32::try_from(seats.taken.len() - 1).expect("fewer than 2^32 waits")
        })
    }

    fn free(&self, place: u32) {
        let watcher = {
            let seats = &mut *self.seats.borrow_mut();
            seats.free.push(place);
            mem::take(&mut seats.taken[place as usize])
        };
        drop(watcher);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holds_in_one_place_count_one_by_one_and_end_together() {
        let closing = Rc::new(Closing::default());
        closing.enter();
        let (one, many) = (hold(), holds());
        assert_eq!(closing.holds(), 1, "none of many yet");
        many.add();
        many.add();
        many.add();
        many.give_back();
        assert_eq!(closing.holds(), 3);
        drop(many);
        assert_eq!(closing.holds(), 1);
        drop(one);
        assert_eq!(closing.holds(), 0);
        Closing::leave();
    }
}
