//! Handlers whose work blocks, on threads of their own, and a gate before those that are scarce.
//!
//! It may not write an answer.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;

use traps::admission::{Limit, Place};
use traps::threads::Limiter;

use super::form::Form;
use super::whole::Whole;
use crate::http::{ErrorPage, Handler, Request, Response};
use crate::stream::Stream;

/// A [`Limit`], and what those are answered whom it does not let in: what the route promised them,
/// whatever the status. The default is that of [`Entrance::new`].
///
/// ```
/// use net::http::Response;
/// use net::web::{Entrance, Object};
/// use traps::admission::Limit;
///
/// let busy = |gate: &Limit| {
///     let info = format!("too busy: {} at a time", gate.limit());
///     Response::json(Object::new().field("task_waiting", false).field("info", info))
/// };
/// let entrance = Entrance::new(Limit::new("request_task", 1)).or_else(busy);
/// let place = entrance.enter().expect("there is room");
/// assert_eq!(entrance.enter().expect_err("there is none").status(), 200);
/// ```
pub struct Entrance {
    gate: Limit,
    busy: Option<Busy>,
}

/// What those are answered whom the limit does not let in.
type Busy = Box<dyn Fn(&Limit) -> Response>;

impl Entrance {
    /// Those who are refused are answered 503 with `Retry-After: 1`, in the form of their route.
    #[must_use]
    pub fn new(gate: Limit) -> Entrance {
        Entrance { gate, busy: None }
    }

    /// Sets what those who are refused are answered. It is called in the turn in which they ask,
    /// and may not block.
    #[must_use]
    pub fn or_else(mut self, busy: impl Fn(&Limit) -> Response + 'static) -> Entrance {
        self.busy = Some(Box::new(busy));
        self
    }

    /// Goes in, until what is given back is dropped. Neither traps nor blocks.
    ///
    /// # Errors
    ///
    /// The answer to be given; as text, unless [`or_else`](Entrance::or_else) makes it.
    pub fn enter(&self) -> Result<Place, Response> {
        self.enter_with(Form::Text.page())
    }

    /// Enters for a request whose [error page](Request::error_page) that is.
    ///
    /// # Errors
    ///
    /// The answer to be given.
    pub fn enter_with(&self, error_page: ErrorPage) -> Result<Place, Response> {
        self.gate.try_enter().map_err(|_full| match &self.busy {
            Some(busy) => busy(&self.gate),
            None => error_page(503, "too busy, ask again later\n").ask_again(),
        })
    }

    /// Whether there is no room now.
    fn is_full(&self) -> bool {
        self.gate.inside() >= self.gate.limit()
    }

    /// The gate, with its counters.
    #[must_use]
    pub fn gate(&self) -> &Limit {
        &self.gate
    }
}

impl fmt::Debug for Entrance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Entrance").field("gate", &self.gate).finish_non_exhaustive()
    }
}

/// A handler that may block: a function from a whole request to a response, run on a worker thread
/// behind a [`Limiter`].
///
/// First a look at the [gate](Blocking::behind), if there is one, on the kernel's thread: where it
/// is full not a byte of the body is read. Then the body, then a place in the gate, then
/// the thread: who finds the gate full only now is refused too, and uses no thread. Until the
/// thread has ended it keeps its token and its place in the gate, also when the connection is
/// gone. The wait for the thread counts for
/// [`Deadlines::handler`](crate::http::Deadlines::handler): when that has passed, the client is
/// answered 503. A panic is a 500, as any handler's. Costs two allocations and a copy of the head.
///
/// ```
/// use net::http::Response;
/// use net::web::{Blocking, Whole};
/// use traps::threads::Limiter;
///
/// let count = |request: &Whole| {
///     let name = request.query_value("file").unwrap_or("/etc/hostname");
///     let text = std::fs::read_to_string(name)?;
///     Ok(Response::text(format!("{} lines\n", text.lines().count())))
/// };
/// let handler = Blocking::new(Limiter::new("count", 4), 0, count);
/// ```
pub struct Blocking<F> {
    limiter: Limiter,
    most: usize,
    entrance: Option<Entrance>,
    work: Arc<F>,
}

impl<F> Blocking<F>
where
    F: Fn(&Whole) -> io::Result<Response> + Send + Sync + 'static,
{
    /// Runs `work` for each request, with as many threads as the limiter has tokens. A body of more
    /// than `most` bytes is answered with 413.
    #[must_use]
    pub fn new(limiter: Limiter, most: usize, work: F) -> Blocking<F> {
        Blocking { limiter, most, entrance: None, work: Arc::new(work) }
    }

    /// Puts it behind a gate.
    #[must_use]
    pub fn behind(mut self, entrance: Entrance) -> Blocking<F> {
        self.entrance = Some(entrance);
        self
    }

    async fn answer<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let page = request.error_page();
        let enter = || self.entrance.as_ref().map(|to| to.enter_with(page)).transpose();
        // Where it is full nobody reads a body, and a place is not for who is still sending one.
        if self.entrance.as_ref().is_some_and(Entrance::is_full)
            && let Err(busy) = enter()
        {
            return Ok(busy);
        }
        let whole = Whole::read(request, self.most).await?;
        let place = match enter() {
            Ok(place) => place,
            Err(busy) => return Ok(busy),
        };
        let work = self.work.clone();
        let job = move || {
            let _place = place;
            work(&whole)
        };
        self.limiter.run_in_thread(job).await?
    }
}

impl<F> Handler for Blocking<F>
where
    F: Fn(&Whole) -> io::Result<Response> + Send + Sync + 'static,
{
    fn handle<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
    ) -> impl Future<Output = io::Result<Response>> {
        self.answer(request)
    }
}

impl<F> fmt::Debug for Blocking<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking")
            .field("limiter", &self.limiter)
            .field("entrance", &self.entrance)
            .finish_non_exhaustive()
    }
}
