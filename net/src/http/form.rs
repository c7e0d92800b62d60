//! In what form a route answers, so that its refusals have that form too.
//!
//! It may not know why anything is refused.

use std::borrow::Cow;

use super::json::Object;
use super::response::Response;

/// What a route promises its clients: a client that reads JSON must not meet a sentence when
/// something goes wrong.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A sentence, as `text/plain`.
    #[default]
    Text,
    /// `{"error":"..."}`, as `application/json`.
    Json,
}

impl Form {
    /// An answer that says what went wrong.
    ///
    /// ```
    /// use net::http::Form;
    ///
    /// let answer = Form::Json.error(503, "/task: primary instance required");
    /// assert_eq!(answer.status(), 503);
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Response::new`].
    pub fn error(self, status: u16, why: impl Into<Cow<'static, str>>) -> Response {
        match self {
            Form::Text => Response::new(status).with_text(why),
            Form::Json => {
                let why = why.into();
                Response::new(status).with_json(Object::new().field("error", why.trim_end()))
            }
        }
    }
}
