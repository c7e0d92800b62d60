//! A small HTTP service that keeps the notes of each user in SQLite.
//!
//! `POST /notes` adds a note and `GET /notes?text=PART` lists notes; `GET /notes/ID` and `DELETE
//! /notes/ID` return and delete one. Bodies are JSON. Each request needs a bearer token, and each
//! response has a number.

pub mod middleware;
mod store;

use std::io;

use middleware::{User, user};
use net::Stream;
use net::http::{Handler, Method, Rejection, Request, RequestHead, RequestParts, Response};
use net::web::{Form, Router};
use serde::Deserialize;
pub use store::{Note, Store};

/// The most bytes of a body.
const BODY: usize = 16 * 1024;

#[derive(Clone, Copy, Debug)]
enum Route {
    List,
    Add,
    Show,
    Remove,
}

/// The body of `POST /notes`.
#[derive(Debug, Deserialize)]
struct NewNote {
    text: String,
}

/// The handler. It expects to be in [`middleware::Authenticated`].
#[derive(Debug)]
pub struct Notes {
    routes: Router<Route>,
    store: Store,
}

impl Notes {
    pub fn new(store: Store) -> Notes {
        let routes = Router::new()
            .form(Form::Json)
            .get("/notes", Route::List)
            .post("/notes", Route::Add)
            .get("/notes/{id}", Route::Show)
            .on(Method::Delete, "/notes/{id}", Route::Remove);
        Notes { routes, store }
    }

    async fn list(&self, parts: &RequestParts<'_>) -> io::Result<Response> {
        let part = parts.query_value("text").unwrap_or_default();
        let notes = self.store.list(&user(parts)?.0, &part).await?;
        Response::json(&notes)
    }

    async fn add(&self, parts: &RequestParts<'_>, new: NewNote) -> io::Result<Response> {
        let note = self.store.add(&user(parts)?.0, new.text).await?;
        let place = format!("/notes/{}", note.id);
        Response::new(201).header("Location", place)?.with_json(&note)
    }

    async fn show(&self, parts: &RequestParts<'_>) -> io::Result<Response> {
        let note = self.store.find(&user(parts)?.0, id(parts)?).await?;
        Response::json(&note.ok_or_else(no_note)?)
    }

    async fn remove(&self, parts: &RequestParts<'_>) -> io::Result<Response> {
        let User(name) = user(parts)?;
        match self.store.remove(name, id(parts)?).await? {
            true => Ok(Response::new(204)),
            false => Err(no_note().into()),
        }
    }
}

fn id(head: &RequestHead) -> io::Result<i64> {
    Ok(head.param("id").and_then(|id| id.parse().ok()).ok_or_else(no_note)?)
}

fn no_note() -> Rejection {
    Rejection::new(404, "there is no such note\n")
}

impl Handler for Notes {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let route = match self.routes.find(request) {
            Ok(route) => route,
            Err(response) => return Ok(response),
        };
        match route {
            Route::List => self.list(request).await,
            Route::Add => {
                let new = request.json(BODY).await?;
                self.add(request, new).await
            }
            Route::Show => self.show(request).await,
            Route::Remove => self.remove(request).await,
        }
    }
}
