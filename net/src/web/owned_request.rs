//! An owned request with its whole body, to be taken to another thread.
//!
//! This module must not wait, except for the body.

use std::io;
use std::ops::Deref;

use crate::http::guard::memory::Growing;
use crate::http::{Request, RequestHead};
use crate::stream::Stream;

/// A request that owns its header section and its body. It dereferences to its [`RequestHead`].
#[derive(Debug)]
pub struct OwnedRequest {
    head: RequestHead,
    body: Growing,
}

impl OwnedRequest {
    /// Reads the rest of the body, at most `most` bytes, and copies it with the header section.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Request::body_to_vec`].
    pub async fn read<S: Stream>(
        request: &mut Request<'_, S>,
        most: usize,
    ) -> io::Result<OwnedRequest> {
        let body = Growing(request.body_to_vec(most).await?);
        Ok(OwnedRequest { head: request.copied(), body })
    }

    /// Returns the body.
    #[must_use]
    pub fn body(&self) -> &[u8] {
        &self.body.0
    }
}

impl Clone for OwnedRequest {
    fn clone(&self) -> OwnedRequest {
        OwnedRequest { head: self.head.copied(), body: self.body.clone() }
    }
}

impl Deref for OwnedRequest {
    type Target = RequestHead;

    fn deref(&self) -> &RequestHead {
        &self.head
    }
}
