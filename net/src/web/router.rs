//! Routing: finds the route of a request by its path and its method, and makes the response if
//! there is none.
//!
//! A router is a table of values; the handler's `match` decides what to do for each value. The
//! table of paths is that of `matchit`, a tree of prefixes. This module must not answer a request
//! that has a route.

use percent_encoding::percent_decode_str;

use super::form::Form;
use crate::http::{Method, Request, Response};

/// A table of paths, with a value for each method of a path.
///
/// A pattern is a path, such as `/tasks`. A segment `{name}` is a *parameter* and matches any one
/// segment, as in `/tasks/{id}`. At the end, `{*name}` matches all remaining segments, at least
/// one, as in `/files/{*name}`. A segment without a parameter has precedence over one with a
/// parameter. Percent-encoded bytes match like the bytes that they encode, except for an encoded
/// slash. A look-up allocates only for a path with percent signs.
///
/// After the look-up, [`RequestHead::param`](crate::http::RequestHead::param) has the parameters.
///
/// ```
/// use std::io;
/// use net::Stream;
/// use net::http::{Handler, Request, RequestHead, Response};
/// use net::web::Router;
///
/// #[derive(Clone, Copy)]
/// enum Route {
///     Home,
///     Echo,
///     Task,
/// }
///
/// struct App {
///     routes: Router<Route>,
/// }
///
/// fn app() -> App {
///     let routes = Router::new().get("/", Route::Home).post("/echo", Route::Echo);
///     App { routes: routes.get("/tasks/{id}", Route::Task) }
/// }
///
/// fn task(head: &RequestHead) -> Response {
///     Response::text(format!("Task {}\n", head.param("id").unwrap_or_default()))
/// }
///
/// impl Handler for App {
///     async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
///         let route = match self.routes.find(request) {
///             Ok(route) => route,
///             Err(response) => return Ok(response),
///         };
///         match route {
///             Route::Home => Ok(Response::text("Hello\n")),
///             Route::Echo => Ok(Response::new(200).with_body(request.body_to_vec(100).await?)),
///             Route::Task => Ok(task(request)),
///         }
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Router<T> {
    /// The places of the patterns in `paths`.
    table: matchit::Router<usize>,
    paths: Vec<Path<T>>,
    /// The form of the responses for paths that are added next.
    form: Form,
}

#[derive(Clone, Debug)]
struct Path<T> {
    pattern: &'static str,
    form: Form,
    routes: Vec<(Method, T)>,
    /// The value of the `Allow` field.
    allow: String,
}

impl<T> Default for Router<T> {
    fn default() -> Router<T> {
        Router::new()
    }
}

impl<T> Router<T> {
    /// Makes a router without paths.
    #[must_use]
    pub fn new() -> Router<T> {
        Router { table: matchit::Router::new(), paths: Vec::new(), form: Form::Text }
    }

    /// Sets the form of the responses for paths that are added after this call. The last call also
    /// sets the form of the response for an unknown path. The first form is [`Form::Text`].
    #[must_use]
    pub fn form(mut self, form: Form) -> Router<T> {
        self.form = form;
        self
    }

    /// Adds a route for GET and HEAD.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Router::on`].
    #[must_use]
    pub fn get(self, pattern: &'static str, route: T) -> Router<T> {
        self.on(Method::Get, pattern, route)
    }

    /// Adds a route for POST.
    ///
    /// # Panics
    ///
    /// Panics in the same cases as [`Router::on`].
    #[must_use]
    pub fn post(self, pattern: &'static str, route: T) -> Router<T> {
        self.on(Method::Post, pattern, route)
    }

    /// Adds a route for one method.
    ///
    /// # Panics
    ///
    /// Panics if the pattern is not a path as described [above](Router), or if it and another
    /// pattern match the same paths, such as `/{a}` and `/{b}`. Panics if the path already has a
    /// route for this method.
    #[must_use]
    pub fn on(mut self, method: Method, pattern: &'static str, route: T) -> Router<T> {
        let place = match self.paths.iter().position(|path| path.pattern == pattern) {
            Some(place) => place,
            None => {
                let is_path = pattern.starts_with('/') && pattern.split('/').all(is_segment);
                assert!(is_path, "rule: a pattern is a path with whole segments: {pattern}");
                let place = self.paths.len();
                if let Err(why) = self.table.insert(pattern, place) {
                    panic!("rule: a pattern is of one path: {pattern}: {why}");
                }
                let (routes, allow, form) = (Vec::new(), String::new(), self.form);
                self.paths.push(Path { pattern, form, routes, allow });
                place
            }
        };
        let path = &mut self.paths[place];
        let known = path.routes.iter().any(|(known, _)| *known == method);
        assert!(!known, "rule: a path has one route for a method: {pattern}");
        path.routes.push((method, route));
        path.allow = allow(path.routes.iter().map(|(method, _)| *method));
        self
    }

    /// Finds the route of a request. From now on, the request has the parameters of the route, and
    /// error responses to it have [the form](Request::set_error_page) of its path.
    ///
    /// # Errors
    ///
    /// Returns the response if there is no route. An unknown path gets 404. A method that the path
    /// does not have gets 405 with `Allow`. OPTIONS gets 204 with `Allow` unless it has a route;
    /// for the target `*`, `Allow` lists the methods of all paths.
    // Inlined, because the result is large and would otherwise be moved.
    #[inline(always)]
    pub fn find<S>(&self, request: &mut Request<'_, S>) -> Result<&T, Response> {
        let method = request.method();
        let Some(path) = self.path_of(request.path_bytes()) else {
            return Err(self.nowhere(request));
        };
        request.set_route(path.pattern);
        request.set_error_page(path.form.page());
        match path.routes.iter().find(|(known, _)| *known == method) {
            Some((_, route)) => Ok(route),
            None => Err(path.refuse(method)),
        }
    }

    #[cold]
    fn nowhere<S>(&self, request: &mut Request<'_, S>) -> Response {
        if request.method() == Method::Options && request.path() == "*" {
            let all = self.paths.iter().flat_map(|path| &path.routes);
            return options(&allow(all.map(|(method, _)| *method)));
        }
        request.set_error_page(self.form.page());
        self.form.error(404, "there is nothing here\n")
    }

    /// Finds the path that matches `asked`. Compare first, because most paths have no parameter and
    /// so equal their pattern, and the walk through the tree costs ten times as much.
    #[inline(always)]
    fn path_of(&self, asked: &[u8]) -> Option<&Path<T>> {
        let same = self.paths.iter().find(|path| path.pattern.as_bytes() == asked);
        same.or_else(|| self.path_in_tree(asked))
    }

    #[inline(never)]
    fn path_in_tree(&self, asked: &[u8]) -> Option<&Path<T>> {
        let asked = std::str::from_utf8(asked).expect("a target is ASCII");
        let place = match asked.contains('%') {
            false => *self.table.at(asked).ok()?.value,
            true => *self.table.at(&decoded(asked)).ok()?.value,
        };
        Some(&self.paths[place])
    }
}

/// Returns whether a segment of a pattern is plain, or one parameter.
fn is_segment(segment: &str) -> bool {
    let parameter = segment.strip_prefix('{').and_then(|it| it.strip_suffix('}'));
    !parameter.unwrap_or(segment).contains(['{', '}', '%', '?', '#'])
}

/// Decodes the segments of a path, except for a segment that would contain a slash then, or would
/// not be UTF-8.
#[cold]
fn decoded(path: &str) -> String {
    let segments = path.split('/').map(|segment| match percent_decode_str(segment).decode_utf8() {
        Ok(text) if !text.contains('/') => text,
        _ => segment.into(),
    });
    segments.collect::<Vec<_>>().join("/")
}

impl<T> Path<T> {
    /// Makes the response to a method that the path does not have.
    #[cold]
    fn refuse(&self, method: Method) -> Response {
        if method == Method::Options {
            return options(&self.allow);
        }
        let response = self.form.error(405, "the method is not allowed here\n");
        allowing(response, &self.allow)
    }
}

/// Makes the value of an `Allow` field. A path with GET has HEAD, and every path has OPTIONS.
fn allow(methods: impl Iterator<Item = Method>) -> String {
    let mut names: Vec<&str> = Vec::new();
    let mut add = |name| {
        if !names.contains(&name) {
            names.push(name);
        }
    };
    for method in methods {
        match method {
            Method::Get => {
                add("GET");
                add("HEAD");
            }
            Method::Post => add("POST"),
            Method::Put => add("PUT"),
            Method::Delete => add("DELETE"),
            Method::Patch => add("PATCH"),
            Method::Options => add("OPTIONS"),
            Method::Trace => add("TRACE"),
        }
    }
    add("OPTIONS");
    names.join(", ")
}

fn allowing(response: Response, allow: &str) -> Response {
    response.header("Allow", allow).expect("names of methods are a field's value")
}

fn options(allow: &str) -> Response {
    allowing(Response::new(204), allow)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the pattern of a path.
    fn find(router: &Router<()>, path: &str) -> Option<&'static str> {
        Some(router.path_of(path.as_bytes())?.pattern)
    }

    #[test]
    fn a_segment_goes_before_a_parameter_and_that_before_all_that_is_left() {
        let patterns = ["/{*all}", "/a/{*all}", "/a", "/a/b/{id}", "/a/b/{id}/c", "/a/b/c"];
        let router = patterns.iter().fold(Router::new(), |router, it| router.get(it, ()));
        let router = router.on(Method::Delete, "/a", ()).post("/a/b/{id}", ());
        for (path, pattern) in [
            ("/x", "/{*all}"),
            ("/a", "/a"),
            ("/ab", "/{*all}"),
            ("/a/x/y", "/a/{*all}"),
            ("/a/b", "/a/{*all}"),
            ("/a/b/x", "/a/b/{id}"),
            ("/a/b/x/c", "/a/b/{id}/c"),
            ("/a/b/x/d", "/a/{*all}"),
            ("/a/b/c", "/a/b/c"),
            ("/a/b/c/", "/a/{*all}"),
            ("/%61", "/a"),
            ("/a/%62/%63", "/a/b/c"),
            ("/a/%62/%2e", "/a/b/{id}"),
            ("/a%2fb/c", "/{*all}"),
            ("/a/b%2Fc", "/a/{*all}"),
            ("/%zz", "/{*all}"),
            ("/%ff", "/{*all}"),
            ("/a/b/%", "/a/b/{id}"),
            ("/a/b/%7bid%7d", "/a/b/{id}"),
            ("/a/b/{id}", "/a/b/{id}"),
            ("/{id}", "/{*all}"),
        ] {
            assert_eq!(find(&router, path), Some(pattern), "{path}");
        }
        for path in ["*", "/", ""] {
            assert_eq!(find(&router, path), None, "{path}");
        }
        let router = Router::new().get("/abc", ()).get("/x/{id}", ());
        for path in ["/ab", "/ab%6", "/abcd", "/abc/", "/x", "/x/", "/x/y/", "/x//"] {
            assert_eq!(find(&router, path), None, "{path}");
        }
    }

    #[test]
    fn allow_names_each_method_once() {
        let methods = [Method::Get, Method::Post, Method::Get, Method::Options];
        assert_eq!(allow(methods.into_iter()), "GET, HEAD, POST, OPTIONS");
        assert_eq!(allow([Method::Put].into_iter()), "PUT, OPTIONS");
    }

    #[test]
    fn a_pattern_that_is_none_is_a_broken_rule() {
        for pattern in ["", "a", "/{a", "/a{b}", "/{a}b", "/{}", "/{*a}/b", "/%61", "/a?b"] {
            let make = move || Router::new().get(pattern, ());
            let panic = std::panic::catch_unwind(make).expect_err(pattern);
            let message = traps::internal::panic_message(&*panic).to_owned();
            assert!(message.starts_with("rule: a pattern is"), "{message}");
        }
        let twice = || Router::new().get("/", ()).get("/", ());
        assert!(std::panic::catch_unwind(twice).is_err());
        let same = || Router::new().get("/{a}", ()).get("/{b}", ());
        assert!(std::panic::catch_unwind(same).is_err());
    }
}
