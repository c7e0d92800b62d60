//! Handlers that block, each request on a worker thread, with a limit in front for scarce
//! resources.
//!
//! This module must not write a response to a stream.

use std::fmt;
use std::future::Future;
use std::io;
use std::sync::Arc;

use traps::admission::{Admission, AdmissionLimit};
use traps::threads::Limiter;

use super::form::Form;
use super::owned_request::OwnedRequest;
use crate::http::{ErrorPage, Handler, Request, Response};
use crate::stream::Stream;

/// A limit on the requests that are handled at the same time: an [`AdmissionLimit`], with the
/// response for the clients that it refuses. [`ConcurrencyLimit::or_else`] sets a function that
/// makes a response of any form and status. Without it, the response is that of
/// [`ConcurrencyLimit::new`].
///
/// ```
/// use net::http::Response;
/// use net::web::ConcurrencyLimit;
/// use traps::admission::AdmissionLimit;
///
/// let busy = |limit: &AdmissionLimit| {
///     Response::text(format!("too busy: {} at a time\n", limit.limit()))
/// };
/// let limit = ConcurrencyLimit::new(AdmissionLimit::new("request_task", 1)).or_else(busy);
/// let place = limit.try_admit().expect("there is room");
/// assert_eq!(limit.try_admit().expect_err("there is none").status(), 200);
/// ```
pub struct ConcurrencyLimit {
    admissions: AdmissionLimit,
    busy: Option<BusyResponse>,
}

/// The function that makes the response for a refused client.
type BusyResponse = Box<dyn Fn(&AdmissionLimit) -> Response>;

impl ConcurrencyLimit {
    /// Makes a limit. Refused clients get 503 with `Retry-After: 1`, in the form of their route.
    #[must_use]
    pub fn new(admissions: AdmissionLimit) -> ConcurrencyLimit {
        ConcurrencyLimit { admissions, busy: None }
    }

    /// Sets the function that makes the response for a refused client. It is called in the turn of
    /// the refusal, and must not block.
    #[must_use]
    pub fn or_else(
        mut self,
        busy: impl Fn(&AdmissionLimit) -> Response + 'static,
    ) -> ConcurrencyLimit {
        self.busy = Some(Box::new(busy));
        self
    }

    /// Admits a request, which counts until the returned [`Admission`] is dropped. Does not trap or
    /// block.
    ///
    /// # Errors
    ///
    /// Returns the response if there is no room. It is text, unless
    /// [`or_else`](ConcurrencyLimit::or_else) makes it.
    pub fn try_admit(&self) -> Result<Admission, Response> {
        self.try_admit_with(Form::Text.page())
    }

    /// Admits a request with this [error page](Request::error_page), as
    /// [`ConcurrencyLimit::try_admit`] does.
    ///
    /// # Errors
    ///
    /// Returns the response if there is no room.
    pub fn try_admit_with(&self, error_page: ErrorPage) -> Result<Admission, Response> {
        self.admissions.try_admit().map_err(|_full| match &self.busy {
            Some(busy) => busy(&self.admissions),
            None => error_page(503, "too busy, ask again later\n").ask_again(),
        })
    }

    /// Returns whether the limit would refuse a request now.
    fn is_full(&self) -> bool {
        self.admissions.inside() >= self.admissions.limit()
    }

    /// Returns the limit, with its counters.
    #[must_use]
    pub fn admissions(&self) -> &AdmissionLimit {
        &self.admissions
    }
}

impl fmt::Debug for ConcurrencyLimit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ConcurrencyLimit")
            .field("admissions", &self.admissions)
            .finish_non_exhaustive()
    }
}

/// A handler that may block: a function from a whole request to a response. It runs on a worker
/// thread, within a [`Limiter`].
///
/// If there is a [concurrency limit](Blocking::behind), the handler first checks on the kernel's
/// thread whether it has room. If not, the client is refused before any of the body is read. Then
/// the handler reads the body, takes a place, and asks for a thread. If the last place was taken in
/// the meantime, the client is refused here, and no thread is used. A thread keeps its token and
/// its place until its work has ended, even if the connection is gone. The wait for the thread
/// counts as time of the handler ([`Deadlines::handler`](crate::http::Deadlines::handler)). When
/// that time is over, the client gets 503. A panic becomes a 500, as in any handler. Costs two
/// allocations and a copy of the header section.
///
/// ```
/// use net::http::Response;
/// use net::web::{Blocking, OwnedRequest};
/// use traps::threads::Limiter;
///
/// let count = |request: &OwnedRequest| {
///     let name = request.query_value("file").unwrap_or("/etc/hostname".into());
///     let text = std::fs::read_to_string(&*name)?;
///     Ok(Response::text(format!("{} lines\n", text.lines().count())))
/// };
/// let handler = Blocking::new(Limiter::new("count", 4), 0, count);
/// ```
pub struct Blocking<F> {
    limiter: Limiter,
    most: usize,
    limit: Option<ConcurrencyLimit>,
    work: Arc<F>,
}

impl<F> Blocking<F>
where
    F: Fn(&OwnedRequest) -> io::Result<Response> + Send + Sync + 'static,
{
    /// Makes a handler that runs `work` for each request, with as many threads as the limiter has
    /// tokens. A request with a body of more than `most` bytes gets 413.
    #[must_use]
    pub fn new(limiter: Limiter, most: usize, work: F) -> Blocking<F> {
        Blocking { limiter, most, limit: None, work: Arc::new(work) }
    }

    /// Puts the handler behind a limit.
    #[must_use]
    pub fn behind(mut self, limit: ConcurrencyLimit) -> Blocking<F> {
        self.limit = Some(limit);
        self
    }

    async fn respond<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let page = request.error_page();
        let admit = || self.limit.as_ref().map(|limit| limit.try_admit_with(page)).transpose();
        // If there is no room, do not read the body. Take no place yet, because the client may send
        // its body slowly.
        if self.limit.as_ref().is_some_and(ConcurrencyLimit::is_full)
            && let Err(busy) = admit()
        {
            return Ok(busy);
        }
        let owned = OwnedRequest::read(request, self.most).await?;
        let place = match admit() {
            Ok(place) => place,
            Err(busy) => return Ok(busy),
        };
        let work = self.work.clone();
        let job = move || {
            let _place = place;
            work(&owned)
        };
        self.limiter.run_in_thread(job).await?
    }
}

impl<F> Handler for Blocking<F>
where
    F: Fn(&OwnedRequest) -> io::Result<Response> + Send + Sync + 'static,
{
    fn handle<S: Stream>(
        &self,
        request: &mut Request<'_, S>,
    ) -> impl Future<Output = io::Result<Response>> {
        self.respond(request)
    }
}

impl<F> fmt::Debug for Blocking<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Blocking")
            .field("limiter", &self.limiter)
            .field("limit", &self.limit)
            .finish_non_exhaustive()
    }
}
