//! The form of a route's responses, so that its refusals have the same form.
//!
//! This module must not know the reasons for refusals.

use crate::http::{ErrorPage, Response};

/// The form of all responses of a route. For example, a client that reads JSON gets JSON even if
/// the request fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Form {
    /// A sentence, as `text/plain`.
    #[default]
    Text,
    /// `{"error":"..."}`, as `application/json`.
    #[cfg(feature = "json")]
    Json,
}

impl Form {
    /// Makes a response that reports an error.
    ///
    /// ```
    /// use net::web::Form;
    ///
    /// let response = Form::Text.error(503, "/task: primary instance required\n");
    /// assert_eq!(response.status(), 503);
    /// ```
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Response::new`].
    pub fn error(self, status: u16, why: &str) -> Response {
        self.page()(status, why)
    }

    /// Returns the function that makes error responses of this form.
    #[must_use]
    pub fn page(self) -> ErrorPage {
        match self {
            Form::Text => |status, why| Response::new(status).with_text(why.to_owned()),
            #[cfg(feature = "json")]
            Form::Json => |status, why| {
                let error = serde_json::json!({ "error": why.trim_end() });
                Response::new(status).with_json(&error).expect("a string is a value of JSON")
            },
        }
    }
}
