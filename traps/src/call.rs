//! The one future that traps. Every verb is a few lines around it.

use std::fmt;
use std::marker::PhantomData;
use std::num::NonZeroU32;
use std::panic::Location;
use std::pin::Pin;
use std::rc::Rc;
use std::task::{Context, Poll};

use crate::gate::{self, Look, Receipt};
use crate::interrupt::Interrupt;
use crate::protocol::{Answer, Owned, Request, Site};

/// One request, from before it is filed until its answer is read.
///
/// The first poll files the request and pends. Later polls take the answer if there is one. A
/// request belongs to the task that polled it first. If another task polls it, it is withdrawn from
/// the first task and filed again in the second.
///
/// Neither `Send` nor `Sync`: a request belongs to the gate of its thread.
#[derive(Debug)]
pub(crate) struct Call {
    receipt: Option<Receipt>,
    site: Site,
    local: PhantomData<Rc<()>>,
}

impl Call {
    /// A request that is not filed yet, at the caller's place in the source.
    #[track_caller]
    pub(crate) fn here() -> Call {
        Call::from(Location::caller())
    }

    pub(crate) fn from(site: Site) -> Call {
        Call { receipt: None, site, local: PhantomData }
    }

    pub(crate) fn site(&self) -> Site {
        self.site
    }

    /// The task that filed the request and its serial number, until its answer is read.
    pub(crate) fn receipt(&self) -> Option<Receipt> {
        self.receipt
    }

    pub(crate) fn is_filed(&self) -> bool {
        self.receipt.is_some()
    }

    /// Whether the task that is being polled filed it.
    pub(crate) fn is_filed_here(&self) -> bool {
        self.receipt.is_some_and(|receipt| Some(receipt.task) == gate::task())
    }

    /// Files the request that `request` makes, or takes the answer.
    #[inline]
    pub(crate) fn poll(
        &mut self,
        cx: &mut Context<'_>,
        request: impl FnOnce() -> Request,
    ) -> Poll<Reply> {
        if let Some(receipt) = self.receipt {
            match gate::collect(receipt, self.site, cx) {
                Look::Answer(answer) => {
                    self.receipt = None;
                    return Poll::Ready(Reply { answer, serial: receipt.serial });
                }
                Look::Nothing => return Poll::Pending,
                Look::Elsewhere => drop(self.abandon()),
            }
        }
        self.receipt = Some(gate::file(request(), self.site, cx));
        Poll::Pending
    }

    /// Withdraws the request. Returns an unread answer with the value that it owns. An unread
    /// interrupt is not returned: it becomes pending again in its scope.
    pub(crate) fn abandon(&mut self) -> Option<(Answer, Option<Owned>)> {
        gate::withdraw(self.receipt.take()?)
    }
}

impl Drop for Call {
    #[inline]
    fn drop(&mut self) {
        if self.receipt.is_some() {
            drop(self.abandon());
        }
    }
}

/// An answer as its future reads it.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Reply {
    answer: Answer,
    serial: NonZeroU32,
}

impl Reply {
    /// Whether the answer is `Done`.
    #[inline]
    pub(crate) fn is_done(self) -> bool {
        self.answer == Answer::Done
    }

    /// The plain answer, or the value that it owns.
    #[inline]
    pub(crate) fn open(self) -> Result<Answer, Owned> {
        match self.answer {
            Answer::Owned => Err(self.owned()),
            plain => Ok(plain),
        }
    }

    /// The plain answer of a trap whose only failure is an interrupt.
    #[inline]
    pub(crate) fn plain(self) -> Result<Answer, Interrupt> {
        self.open().map_err(only_interrupt)
    }

    /// Checks that the request is done, for a trap whose only failure is an interrupt.
    #[inline]
    pub(crate) fn done(self) -> Result<(), Interrupt> {
        self.plain().map(drop)
    }

    #[cold]
    fn owned(self) -> Owned {
        gate::take_owned(self.serial).expect("rule: what an answer owns is laid down with it")
    }

    /// The kernel broke the protocol.
    #[cold]
    pub(crate) fn wrong(self) -> ! {
        unreachable!("rule: a request is answered in kind, not by {:?}", self.answer)
    }
}

/// The interrupt in the answer of a trap that can fail in no other way.
#[cold]
pub(crate) fn only_interrupt(owned: Owned) -> Interrupt {
    match owned {
        Owned::Interrupt(interrupt) => interrupt,
        _ => unreachable!("rule: this trap fails by an interrupt only"),
    }
}

/// A request that needs no state of its own, as in most verbs.
pub(crate) fn trap<T, R>(request: Request, site: Site, read: R) -> Trap<R>
where
    R: Fn(Reply) -> T,
{
    Trap { request, call: Call::from(site), read }
}

/// The future of [`trap`].
#[must_use = "a trap that is not awaited is never made"]
pub(crate) struct Trap<R> {
    request: Request,
    call: Call,
    read: R,
}

impl<R> Unpin for Trap<R> {}

impl<T, R: Fn(Reply) -> T> Future for Trap<R> {
    type Output = T;

    #[inline]
    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<T> {
        let Trap { request, call, read } = &mut *self;
        call.poll(cx, || *request).map(read)
    }
}

impl<R> fmt::Debug for Trap<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Trap").field("request", &self.request).finish_non_exhaustive()
    }
}
