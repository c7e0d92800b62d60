//! Spawning: what a task is made of, and the request that makes it.

use std::any::Any;
use std::borrow::Cow;
use std::fmt;
use std::future::Future;
use std::marker::PhantomData;
use std::mem;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll, ready};

use pin_project_lite::pin_project;

use crate::call::Call;
use crate::gate;
use crate::label::Label;
use crate::limits::SPARES;
use crate::protocol::{Answer, Body, Request, Site};
use crate::task::Task;

pin_project! {
    // The label is in both: what is no label tells them apart, in place of 8 bytes beside. Only a
    // spare one has none: it is kept by its label.
    #[project = JobProjection]
    enum Job<F: Future> {
        Running { label: Rc<Label>, #[pin] future: F },
        Ended { label: Option<Rc<Label>>, output: Option<F::Output> },
    }
}

impl<F> Job<F>
where
    F: Future + 'static,
{
    /// Where one has ended at this place, another one may lie: that saves an allocation.
    #[inline]
    fn pinned(label: Rc<Label>, future: F) -> Pin<Box<Job<F>>> {
        let spare = label.take_spare();
        let job = Job::Running { label, future };
        match spare {
            Some(mut spare) => {
                Pin::set(&mut spare, job);
                spare
            }
            None => Box::pin(job),
        }
    }

    #[inline]
    fn label(&self) -> &Rc<Label> {
        match self {
            Job::Running { label, .. } | Job::Ended { label: Some(label), .. } => label,
            Job::Ended { label: None, .. } => unreachable!("rule: a task that is gone has no name"),
        }
    }
}

impl<F> Body for Job<F>
where
    F: Future + 'static,
{
    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match self.as_mut().project() {
            JobProjection::Running { label, future } => {
                let output = Some(ready!(future.poll(cx)));
                let label = Some(label.clone());
                self.set(Job::Ended { label, output });
                Poll::Ready(())
            }
            JobProjection::Ended { .. } => unreachable!("rule: an ended task is not polled"),
        }
    }

    fn take(self: Pin<&mut Self>, slot: &mut dyn Any) {
        let slot = slot.downcast_mut::<Option<F::Output>>().expect("a join asks for its own type");
        if let JobProjection::Ended { output, .. } = self.project() {
            *slot = output.take();
        }
    }

    fn clear(self: Pin<&mut Self>) {
        if let JobProjection::Ended { output, .. } = self.project() {
            *output = None;
        }
    }

    #[inline]
    fn retire(mut self: Pin<Box<Self>>) {
        let JobProjection::Ended { label, output } = self.as_mut().project() else { return };
        *output = None;
        if let Some(label) = label.take() {
            label.keep_spare(self, SPARES / size_of::<Self>());
        }
    }

    fn name(&self) -> &str {
        &self.label().name
    }

    fn site(&self) -> Site {
        self.label().site
    }
}

/// Makes a new task that runs `future`; await it for the [`Task`], whose [`join`](Task::join) waits
/// for the output. *Answers*: the caller goes on, the child first runs in the next turn. No
/// deadline, scope or name is inherited. Costs one allocation, or none where a task of that name
/// and place has ended: up to 64 KiB of what those lay in is kept there, for futures of one type. A
/// name that is made up costs two more.
///
/// ```no_run
/// # async fn example() -> Result<(), traps::JoinError> {
/// let mut child = traps::spawn("child", async { 6 * 7 }).await;
/// assert_eq!(child.join().await?, 42);
/// # Ok(())
/// # }
/// ```
#[track_caller]
pub fn spawn<F>(name: impl Into<Cow<'static, str>>, future: F) -> Spawn<F::Output>
where
    F: Future + 'static,
    F::Output: 'static,
{
    Spawn::new(name.into(), Location::caller(), future)
}

/// The future of [`spawn`]: await it for the [`Task`], which has [`join`](Task::join).
#[must_use = "a trap that is not awaited is never made: the task does not exist"]
pub struct Spawn<T> {
    body: Offer,
    call: Call,
    output: PhantomData<fn() -> T>,
}

/// What a task is to be made of, until that is offered. Nearly all are, so their drop is short.
#[derive(Default)]
struct Offer(Option<Pin<Box<dyn Body>>>);

impl Offer {
    #[inline]
    fn take(&mut self) -> Pin<Box<dyn Body>> {
        let rule = "rule: a spawn is offered once; it was polled before, or its kernel is gone";
        self.0.take().expect(rule)
    }

    #[cold]
    #[inline(never)]
    fn clear(&mut self) {
        self.0 = None;
    }
}

impl Drop for Offer {
    #[inline]
    fn drop(&mut self) {
        if self.0.is_some() {
            self.clear();
        }
    }
}

impl<T: 'static> Spawn<T> {
    pub(crate) fn new<F>(name: Cow<'static, str>, site: Site, future: F) -> Spawn<T>
    where
        F: Future<Output = T> + 'static,
    {
        let body = Job::pinned(Label::of(name, site), future);
        Spawn { body: Offer(Some(body)), call: Call::at(site), output: PhantomData }
    }
}

impl<T> Spawn<T> {
    /// The same for a task that nobody will join or cancel: no handle tells the kernel of its own
    /// end. For a task for each connection, say. Its output is thrown away, an `Err` too (its line
    /// is `exit ok`): what is to be known is said inside. A future that was polled already has no
    /// task to offer any more, and panics.
    ///
    /// It is a *post*: ready at once, and told to the kernel when this poll is over, in the order
    /// in which it was made among the rest. It *answers*, as `spawn` does, where its task has an
    /// [`InheritedLocal`](crate::InheritedLocal), and once for each 256 of a poll.
    ///
    /// ```no_run
    /// # async fn example() {
    /// traps::spawn("logger", async { /* as long as it likes */ }).detached().await;
    /// # }
    /// ```
    #[inline(always)]
    pub fn detached(mut self) -> SpawnDetached {
        let (body, call) = (mem::take(&mut self.body), Call::at(self.call.site()));
        let detached = SpawnDetached(Spawn { body, call, output: PhantomData });
        if !self.call.is_filed() {
            // Nothing is left to drop.
            mem::forget(self);
        }
        detached
    }

    /// The task, if it was made and this future has not said so yet.
    pub(crate) fn salvage(&mut self) -> Option<Task<T>> {
        match self.call.abandon() {
            Some(Ok(Answer::Task(task))) => Some(Task::new(task)),
            _ => None,
        }
    }

    /// It was asked for and nobody will have its handle.
    #[cold]
    fn give_up(&mut self) {
        drop(self.salvage());
    }
}

impl<T> fmt::Debug for Spawn<T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Spawn").field("call", &self.call).finish_non_exhaustive()
    }
}

impl<T> Future for Spawn<T> {
    type Output = Task<T>;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Task<T>> {
        let Spawn { body, call, .. } = &mut *self;
        call.poll_task(cx, || Request::Spawn { body: body.take() }).map(Task::new)
    }
}

impl<T> Drop for Spawn<T> {
    #[inline]
    fn drop(&mut self) {
        if self.call.is_filed() {
            self.give_up();
        }
    }
}

/// The future of [`Spawn::detached`].
#[derive(Debug)]
#[must_use = "a trap that is not awaited is never made: the task does not exist"]
pub struct SpawnDetached(Spawn<()>);

impl SpawnDetached {
    /// The task as a request, for when it may not be a post.
    #[cold]
    fn ask(&mut self, cx: &mut Context<'_>) -> Poll<()> {
        Pin::new(&mut self.0).poll(cx).map(drop)
    }
}

impl Future for SpawnDetached {
    type Output = ();

    #[inline(always)]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Spawn { body, call, .. } = &mut self.0;
        if !call.is_filed() {
            let Some(refused) = gate::post_task(body.take(), call.site()) else {
                return Poll::Ready(());
            };
            body.0 = Some(refused);
        }
        self.ask(cx)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    /// Of a sleeping task: a larger one says why, in `benches/counts.txt`.
    #[test]
    fn what_a_task_takes_beside_its_future_does_not_grow() {
        fn beside<F: Future>(_: &F) -> (usize, usize) {
            (size_of::<F>(), size_of::<Job<F>>())
        }
        let sleeps = async { crate::sleep(Duration::from_secs(1)).await };
        assert_eq!(beside(&sleeps), (40, 48));
    }
}
