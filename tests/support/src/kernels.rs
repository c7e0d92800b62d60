//! The code that the tests of the seam share: kernels whose trace is kept and checked, and futures
//! that do on purpose what no well-behaved future does.

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::io;
use std::ops::{Deref, DerefMut};
use std::pin::Pin;
use std::rc::Rc;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};
use std::time::Duration;

#[cfg(unix)]
use kernel::Real;
use kernel::{Kernel, Machine, Options, Sim};
use testing::trace;

pub use crate::tenths;

pub fn secs(n: u64) -> Duration {
    Duration::from_secs(n)
}

#[derive(Clone, Default)]
struct Buffer(Rc<RefCell<Vec<u8>>>);

impl io::Write for Buffer {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0.borrow_mut().extend_from_slice(bytes);
        Ok(bytes.len())
    }
    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// A kernel whose trace is kept, to be ended by [`Traced::end`].
pub struct Traced<M: Machine> {
    kernel: Kernel<M>,
    text: Buffer,
}

impl<M: Machine> Deref for Traced<M> {
    type Target = Kernel<M>;
    fn deref(&self) -> &Kernel<M> {
        &self.kernel
    }
}

impl<M: Machine> DerefMut for Traced<M> {
    fn deref_mut(&mut self) -> &mut Kernel<M> {
        &mut self.kernel
    }
}

impl<M: Machine> Traced<M> {
    pub fn new(machine: M, options: Options) -> Traced<M> {
        let text = Buffer::default();
        let mut kernel = Kernel::with_options(machine, options);
        kernel.trace_to(text.clone());
        kernel.observe(testing::Truth::default());
        Traced { kernel, text }
    }

    pub fn text(&self) -> String {
        String::from_utf8(self.text.0.borrow().clone()).unwrap()
    }

    /// Runs `main` to its output.
    #[track_caller]
    pub fn go<F: Future>(&mut self, main: F) -> F::Output {
        match self.kernel.run(main) {
            Ok(output) => output,
            Err(error) => panic!("{error}\n{}", self.text()),
        }
    }

    /// Drops the kernel as it is. Returns the trace.
    pub fn drop_live(self) -> String {
        drop(self.kernel);
        String::from_utf8(self.text.0.borrow().clone()).unwrap()
    }

    /// Shuts down; asserts that nothing is left and that the oracle accepts the trace. Returns the
    /// trace.
    #[track_caller]
    pub fn end(mut self) -> String {
        let shut = self.kernel.shutdown();
        let text = self.text();
        assert!(shut.is_ok(), "{shut:?}\n{text}");
        assert_empty(&self.kernel, &text);
        assert_sound(&text);
        // A failed assertion of a task that no task joins. (Intended panics have other texts.)
        let failed = text.lines().find(|line| {
            line.contains(" panic    assertion ") || line.contains(" panic    called `")
        });
        assert_eq!(failed, None, "{text}");
        text
    }
}

pub fn sim() -> Traced<Sim> {
    Traced::new(Sim::new(), Options::new())
}

#[cfg(unix)]
pub fn real() -> Traced<Real> {
    Traced::new(Real::new().unwrap(), Options::new())
}

/// Runs a program on the simulated machine. Returns main's output and the checked trace.
#[track_caller]
pub fn on_sim<F: Future>(main: F) -> (F::Output, String) {
    let mut kernel = sim();
    let output = kernel.go(main);
    (output, kernel.end())
}

/// Runs a program on the real machine.
#[cfg(unix)]
#[track_caller]
pub fn on_real<F: Future>(main: F) -> (F::Output, String) {
    let mut kernel = real();
    let output = kernel.go(main);
    (output, kernel.end())
}

/// Asserts that nothing is left of any task.
#[track_caller]
pub fn assert_empty<M: Machine>(kernel: &Kernel<M>, trace: &str) {
    let c = kernel.counters();
    let left = [c.tasks, c.tickets, c.scopes, c.timers, c.registered, c.handles, c.jobs, c.pending];
    assert_eq!((left, c.deadlines), ([0; 8], 0), "{c:?}\n{trace}");
}

#[track_caller]
pub fn assert_sound(text: &str) {
    let lines = trace::trace(text).unwrap_or_else(|error| panic!("{error:?}\n{text}"));
    if let Err(violations) = trace::check(&lines) {
        panic!("{violations:#?}\n{text}");
    }
}

/// Returns how many lines of the trace contain `part`.
pub fn count(trace: &str, part: &str) -> usize {
    trace.lines().filter(|line| line.contains(part)).count()
}

#[track_caller]
pub fn assert_lines(trace: &str, part: &str, n: usize) {
    assert_eq!(count(trace, part), n, "lines with `{part}`\n{trace}");
}

/// A future that several tasks can poll, one after the other.
pub struct Shared<T>(Rc<RefCell<Option<Boxed<T>>>>);

type Boxed<T> = Pin<Box<dyn Future<Output = T>>>;

impl<T> Clone for Shared<T> {
    fn clone(&self) -> Shared<T> {
        Shared(self.0.clone())
    }
}

impl<T> Shared<T> {
    pub fn new(future: impl Future<Output = T> + 'static) -> Shared<T> {
        Shared(Rc::new(RefCell::new(Some(Box::pin(future)))))
    }

    /// Polls it until it is done. Dropping this future does not drop the inner one.
    pub async fn wait(&self) -> T {
        poll_fn(|cx| self.poll(cx)).await
    }

    /// Polls it exactly once.
    pub async fn poll_once(&self) -> Poll<T> {
        poll_fn(|cx| Poll::Ready(self.poll(cx))).await
    }

    fn poll(&self, cx: &mut Context<'_>) -> Poll<T> {
        let mut future = self.0.borrow_mut().take().expect("it is not done");
        let polled = future.as_mut().poll(cx);
        if polled.is_pending() {
            *self.0.borrow_mut() = Some(future);
        }
        polled
    }

    pub fn drop_future(&self) {
        let future = self.0.borrow_mut().take();
        drop(future);
    }
}

/// Polls `future` exactly once, and keeps it.
pub async fn poll_once<F: Future + Unpin>(future: &mut F) -> Poll<F::Output> {
    poll_fn(|cx| Poll::Ready(Pin::new(&mut *future).poll(cx))).await
}

/// Never done, never wakes.
pub fn never<T>() -> impl Future<Output = T> {
    poll_fn(|_| Poll::Pending)
}

/// Counts the polls of the future inside.
pub fn counting<F: Future>(polls: &Rc<Cell<u64>>, future: F) -> impl Future<Output = F::Output> {
    let polls = polls.clone();
    let mut future = Box::pin(future);
    poll_fn(move |cx| {
        polls.set(polls.get() + 1);
        future.as_mut().poll(cx)
    })
}

/// Records its drop.
pub struct OnDrop<F: FnMut()>(pub F);

impl<F: FnMut()> Drop for OnDrop<F> {
    fn drop(&mut self) {
        (self.0)();
    }
}

/// A waker of a combinator: counts its calls and calls the inner waker.
pub struct Counted {
    pub calls: Mutex<u64>,
    pub behind: Mutex<Option<Waker>>,
}

impl Counted {
    pub fn new() -> Arc<Counted> {
        Arc::new(Counted { calls: Mutex::new(0), behind: Mutex::new(None) })
    }

    pub fn calls(&self) -> u64 {
        *self.calls.lock().unwrap()
    }
}

impl Wake for Counted {
    fn wake(self: Arc<Self>) {
        *self.calls.lock().unwrap() += 1;
        let behind = self.behind.lock().unwrap().clone();
        if let Some(waker) = behind {
            waker.wake();
        }
    }
}

/// A value sent once, from any thread, as by a channel of another library.
pub struct Oneshot<T>(Arc<Mutex<(Option<T>, Option<Waker>)>>);

impl<T> Clone for Oneshot<T> {
    fn clone(&self) -> Oneshot<T> {
        Oneshot(self.0.clone())
    }
}

impl<T> Default for Oneshot<T> {
    fn default() -> Oneshot<T> {
        Oneshot(Arc::default())
    }
}

impl<T> Oneshot<T> {
    pub fn new() -> Oneshot<T> {
        Oneshot::default()
    }

    pub fn send(&self, value: T) {
        let waker = {
            let mut state = self.0.lock().unwrap();
            state.0 = Some(value);
            state.1.take()
        };
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Whether a task waits.
    pub fn is_awaited(&self) -> bool {
        self.0.lock().unwrap().1.is_some()
    }

    pub async fn receive(self) -> T {
        poll_fn(|cx| {
            let mut state = self.0.lock().unwrap();
            match state.0.take() {
                Some(value) => Poll::Ready(value),
                None => {
                    state.1 = Some(cx.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}
