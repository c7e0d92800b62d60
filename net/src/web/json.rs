//! Bodies as JSON, both ways. `serde` has the mapping, `serde_json` the grammar.

use std::io::{self, ErrorKind};

use serde_core::Serialize;
use serde_core::de::DeserializeOwned;

use super::{ClientResponse, OwnedRequest};
use crate::http::guard::memory::Growing;
use crate::http::{Rejection, Request, RequestHead, Response};
use crate::stream::Stream;

impl Response {
    /// Makes a response with status 200 and a value as JSON. Needs the feature `json`.
    ///
    /// ```
    /// use net::http::Response;
    ///
    /// # fn main() -> std::io::Result<()> {
    /// let response = Response::json(&["a", "b"])?;
    /// # assert_eq!(response.status(), 200);
    /// # Ok(())
    /// # }
    /// ```
    ///
    /// # Errors
    ///
    /// Returns an error if the value cannot be represented in JSON (for example, a map with
    /// non-string keys) or its `Serialize` fails.
    pub fn json<T: Serialize + ?Sized>(value: &T) -> io::Result<Response> {
        Response::new(200).with_json(value)
    }

    /// Sets the body to a value as JSON. The media type is `application/json`, unless a field sets
    /// another one. Needs the feature `json`.
    ///
    /// # Errors
    ///
    /// Returns the errors of [`Response::json`].
    pub fn with_json<T: Serialize + ?Sized>(self, value: &T) -> io::Result<Response> {
        let body = serde_json::to_vec(value)?;
        Ok(self.of_type("Content-Type: application/json\r\n").with_body(body))
    }
}

impl<S: Stream> Request<'_, S> {
    /// Reads the rest of the body, at most `most` bytes, as a value in JSON. Blocks like
    /// [`Request::body_to_vec`]. Needs the feature `json`.
    ///
    /// # Errors
    ///
    /// Returns a [`Rejection`] with 415, before the body is read, unless its media type is
    /// `application/json` or ends in `+json`; with 400 and the position of the error if the body
    /// does not parse. Also returns the errors of [`Request::body_to_vec`]; a longer body gets 413.
    /// Pass the error on by `?`.
    pub async fn json<T: DeserializeOwned>(&mut self, most: usize) -> io::Result<T> {
        expect_json(self)?;
        let body = Growing(self.body_to_vec(most).await?);
        parse(&body.0)
    }
}

impl OwnedRequest {
    /// Returns the body as a value in JSON. Needs the feature `json`.
    ///
    /// # Errors
    ///
    /// Returns the [`Rejection`]s of [`Request::json`]: 415 for the media type, 400 for the body.
    pub fn json<T: DeserializeOwned>(&self) -> io::Result<T> {
        expect_json(self)?;
        parse(self.body())
    }
}

fn expect_json(head: &RequestHead) -> io::Result<()> {
    if head.header("Content-Type").is_some_and(is_json) {
        return Ok(());
    }
    Err(Rejection::new(415, "the body must be application/json\n").into())
}

fn parse<T: DeserializeOwned>(body: &[u8]) -> io::Result<T> {
    let value = serde_json::from_slice(body);
    Ok(value.map_err(|why| Rejection::new(400, format!("the JSON of the body: {why}\n")))?)
}

impl<S: Stream> ClientResponse<'_, S> {
    /// Reads the rest of the body, at most `most` bytes, as a value in JSON. Blocks like
    /// [`ClientResponse::body_to_vec`]. Needs the feature `json`.
    ///
    /// # Errors
    ///
    /// Returns `InvalidData`, before the body is read, unless its media type is `application/json`
    /// or ends in `+json`, and `InvalidData` if the body does not parse. Also returns the errors of
    /// [`ClientResponse::body_to_vec`].
    pub async fn json<T: DeserializeOwned>(&mut self, most: usize) -> io::Result<T> {
        if !self.header("Content-Type").is_some_and(is_json) {
            let why = format!("the response, with status {}, has no JSON", self.status());
            return Err(io::Error::new(ErrorKind::InvalidData, why));
        }
        let body = self.body_to_vec(most).await?;
        serde_json::from_slice(&body).map_err(|why| {
            io::Error::new(ErrorKind::InvalidData, format!("the JSON of the response: {why}"))
        })
    }
}

/// Returns whether a `Content-Type` is one of JSON (RFC 6839, 3.1). Its parameters do not matter.
fn is_json(kind: &[u8]) -> bool {
    let essence = kind.split(|byte| *byte == b';').next().unwrap_or_default();
    let essence = essence.trim_ascii().to_ascii_lowercase();
    essence == b"application/json" || essence.ends_with(b"+json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_media_type_of_json_is_known_by_its_name_or_its_suffix() {
        for kind in ["application/json", "Application/JSON ; charset=utf-8", "a/problem+json"] {
            assert!(is_json(kind.as_bytes()), "{kind}");
        }
        for kind in ["", "text/plain", "application/jsonp", "text/json", ";application/json"] {
            assert!(!is_json(kind.as_bytes()), "{kind}");
        }
    }
}
