//! In what form a route answers, so that its refusals have that form too.
//!
//! It may not know why anything is refused.

use super::json::Object;
use crate::http::{ErrorPage, Response};

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
    /// use net::web::Form;
    ///
    /// let answer = Form::Json.error(503, "/task: primary instance required");
    /// assert_eq!(answer.status(), 503);
    /// ```
    ///
    /// # Panics
    ///
    /// As [`Response::new`].
    pub fn error(self, status: u16, why: &str) -> Response {
        self.page()(status, why)
    }

    /// What makes such answers.
    #[must_use]
    pub fn page(self) -> ErrorPage {
        match self {
            Form::Text => |status, why| Response::new(status).with_text(why.to_owned()),
            Form::Json => |status, why| {
                Response::new(status).with_json(Object::new().field("error", why.trim_end()))
            },
        }
    }
}
