//! Routing: finds the route of a request by its path and its method, and makes the response if
//! there is none.
//!
//! A router is a table of values; the handler's `match` decides what to do for each value. This
//! module must not answer a request that has a route.

use super::form::Form;
use crate::http::{Method, Request, Response};

/// A table of paths, with a value for each method of a path.
///
/// A pattern is a whole path, such as `/tasks`, or ends in `/*` and matches every path that begins
/// with the part before the `*`, such as `/files/*`. A whole path has precedence over such a
/// *prefix*, and a longer prefix over a shorter one. Percent-encoded bytes match like the bytes
/// that they encode. A look-up allocates nothing, and costs one comparison for each path that has
/// precedence over the result.
///
/// ```
/// use std::io;
/// use net::Stream;
/// use net::http::{Handler, Request, Response};
/// use net::web::{Form, Router};
///
/// #[derive(Clone, Copy)]
/// enum Route {
///     Home,
///     Echo,
///     File,
/// }
///
/// struct App {
///     routes: Router<Route>,
/// }
///
/// fn app() -> App {
///     let text = Router::new().get("/", Route::Home).get("/files/*", Route::File);
///     App { routes: text.form(Form::Json).post("/echo", Route::Echo) }
/// }
///
/// impl Handler for App {
///     async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
///         let found = match self.routes.find(request) {
///             Ok(found) => found,
///             Err(answer) => return Ok(answer),
///         };
///         match found.route {
///             Route::Home => Ok(Response::text("Hello\n")),
///             Route::Echo => Ok(Response::new(200).with_body(request.body_to_vec(100).await?)),
///             Route::File => Ok(Response::text(format!("{}\n", found.rest(request)))),
///         }
///     }
/// }
/// ```
#[derive(Clone, Debug)]
pub struct Router<T> {
    /// The paths whose pattern has no `*`. They are compared first.
    whole: Vec<Path<T>>,
    /// The paths whose pattern ends in `*`, the longest pattern first.
    begun: Vec<Path<T>>,
    /// The form of the responses for paths that are added next.
    form: Form,
}

#[derive(Clone, Debug)]
struct Path<T> {
    /// The part of the pattern that is compared: all of it, or the part before the `*`.
    named: &'static str,
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
        Router { whole: Vec::new(), begun: Vec::new(), form: Form::Text }
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
    /// Panics if the pattern does not begin with `/`, has a `*` that is not the whole last segment,
    /// or contains `%`, `?` or `#`. Panics if the path already has a route for this method.
    #[must_use]
    pub fn on(mut self, method: Method, pattern: &'static str, route: T) -> Router<T> {
        let before = pattern.strip_suffix('*').filter(|before| before.ends_with('/'));
        let named = before.unwrap_or(pattern);
        let plain = named.starts_with('/') && !named.contains(['*', '%', '?', '#']);
        assert!(plain, "rule: a pattern is a path, or a path and `/*`: {pattern}");
        let paths = if before.is_none() { &mut self.whole } else { &mut self.begun };
        let place = match paths.iter().position(|path| path.named == named) {
            Some(place) => place,
            None => {
                let is_before =
                    |path: &Path<T>| before.is_none() || path.named.len() >= named.len();
                let place = paths.iter().take_while(|path| is_before(path)).count();
                let (routes, allow, form) = (Vec::new(), String::new(), self.form);
                paths.insert(place, Path { named, form, routes, allow });
                place
            }
        };
        let path = &mut paths[place];
        let known = path.routes.iter().any(|(known, _)| *known == method);
        assert!(!known, "rule: a path has one route for a method: {pattern}");
        path.routes.push((method, route));
        path.allow = allow(path.routes.iter().map(|(method, _)| *method));
        self
    }

    /// Finds the route of a request. From now on, error responses to the request have [the
    /// form](Request::set_error_page) of its path.
    ///
    /// # Errors
    ///
    /// Returns the response if there is no route. An unknown path gets 404. A method that the path
    /// does not have gets 405 with `Allow`. OPTIONS gets 204 with `Allow` if it has no route of its
    /// own; for the target `*`, `Allow` lists the methods of all paths.
    // Inlined, because the result is large and would be moved otherwise.
    #[inline(always)]
    pub fn find<S>(&self, request: &mut Request<'_, S>) -> Result<Found<'_, T>, Response> {
        let method = request.method();
        let Some((path, rest)) = self.path_of(request.path_bytes()) else {
            return Err(self.nowhere(request));
        };
        request.set_error_page(path.form.page());
        match path.routes.iter().find(|(known, _)| *known == method) {
            Some((_, route)) => Ok(Found { route, rest }),
            None => Err(path.refuse(method)),
        }
    }
}

impl<T> Router<T> {
    #[cold]
    fn nowhere<S>(&self, request: &mut Request<'_, S>) -> Response {
        if request.method() == Method::Options && request.path() == "*" {
            let all = self.whole.iter().chain(&self.begun).flat_map(|path| &path.routes);
            return options(&allow(all.map(|(method, _)| *method)));
        }
        request.set_error_page(self.form.page());
        self.form.error(404, "there is nothing here\n")
    }

    /// Finds the path that matches `asked`. Also returns the position in `asked` at which the
    /// pattern ends.
    #[inline(always)]
    fn path_of(&self, asked: &[u8]) -> Option<(&Path<T>, usize)> {
        let is_it = |path: &&Path<T>| path.named.as_bytes() == asked;
        if let Some(path) = self.whole.iter().find(is_it) {
            return Some((path, asked.len()));
        }
        if asked.contains(&b'%') {
            return self.path_written(asked);
        }
        let begins_it = |path: &&Path<T>| asked.starts_with(path.named.as_bytes());
        self.begun.iter().find(begins_it).map(|path| (path, path.named.len()))
    }

    /// Finds the path of a target with percent signs. Once decoded, the target may match a longer
    /// prefix.
    #[cold]
    fn path_written(&self, asked: &[u8]) -> Option<(&Path<T>, usize)> {
        let end_of = |path: &Path<T>| decoded(path.named.as_bytes(), asked);
        if let Some(path) = self.whole.iter().find(|path| end_of(path) == Some(asked.len())) {
            return Some((path, asked.len()));
        }
        self.begun.iter().find_map(|path| Some((path, end_of(path)?)))
    }
}

impl<T> Path<T> {
    /// Makes the response to a method that the path does not have.
    #[cold]
    fn refuse(&self, method: Method) -> Response {
        if method == Method::Options {
            return options(&self.allow);
        }
        let answer = self.form.error(405, "the method is not allowed here\n");
        allowing(answer, &self.allow)
    }
}

/// Returns the position in `path` at which `pattern` ends, or `None` if it does not match. Percent
/// signs are decoded, but an encoded slash does not match a slash.
fn decoded(pattern: &[u8], path: &[u8]) -> Option<usize> {
    let mut at = 0;
    for wanted in pattern {
        at += match path[at..] {
            [b'%', high, low, ..] if *wanted != b'/' && hex(high, low)? == *wanted => 3,
            [b'%', ..] => return None,
            [byte, ..] if byte == *wanted => 1,
            _ => return None,
        };
    }
    Some(at)
}

/// Decodes the two hexadecimal digits after a percent sign.
pub(crate) fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
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

fn allowing(answer: Response, allow: &str) -> Response {
    answer.header("Allow", allow).expect("names of methods are a field's value")
}

fn options(allow: &str) -> Response {
    allowing(Response::new(204), allow)
}

/// The route of a request.
#[derive(Debug)]
pub struct Found<'r, T> {
    /// The value that the route was added with.
    pub route: &'r T,
    rest: usize,
}

impl<T> Found<'_, T> {
    /// Returns the part of the path that matches the `*` of the pattern, not decoded. It is empty
    /// for a whole path.
    #[must_use]
    pub fn rest<'q, S>(&self, request: &'q Request<'_, S>) -> &'q str {
        &request.path()[self.rest..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Finds the route of a path, and the rest that matches the `*` of its pattern.
    fn find<'p>(router: &Router<&'static str>, path: &'p str) -> Option<(&'static str, &'p str)> {
        let (known, rest) = router.path_of(path.as_bytes())?;
        Some((known.routes[0].1, &path[rest..]))
    }

    #[test]
    fn whole_paths_go_first_and_longer_beginnings_before_shorter_ones() {
        let patterns = ["/*", "/a/*", "/a", "/a/b/*", "/a/b/c"];
        let router = patterns.iter().fold(Router::new(), |router, it| router.get(it, *it));
        let router = router.on(Method::Delete, "/a", "DELETE").post("/a/b/*", "POST");
        for (path, pattern, rest) in [
            ("/", "/*", ""),
            ("/x", "/*", "x"),
            ("/a", "/a", ""),
            ("/ab", "/*", "ab"),
            ("/a/", "/a/*", ""),
            ("/a/x/y", "/a/*", "x/y"),
            ("/a/b", "/a/*", "b"),
            ("/a/b/x", "/a/b/*", "x"),
            ("/a/b/c", "/a/b/c", ""),
            ("/a/b/c/", "/a/b/*", "c/"),
            ("/%61", "/a", ""),
            ("/a/%62/%63", "/a/b/c", ""),
            ("/a/%62/%2e", "/a/b/*", "%2e"),
            ("/a%2fb/c", "/*", "a%2fb/c"),
            ("/a/b%2Fc", "/a/*", "b%2Fc"),
            ("/%zz", "/*", "%zz"),
            ("/a/b/%", "/a/b/*", "%"),
        ] {
            assert_eq!(find(&router, path), Some((pattern, rest)), "{path}");
        }
        assert_eq!(find(&router, "*"), None);
        assert_eq!(find(&Router::new().get("/abc", ""), "/ab"), None);
        assert_eq!(find(&Router::new().get("/abc", ""), "/ab%6"), None);
    }

    #[test]
    fn allow_names_each_method_once() {
        let methods = [Method::Get, Method::Post, Method::Get, Method::Options];
        assert_eq!(allow(methods.into_iter()), "GET, HEAD, POST, OPTIONS");
        assert_eq!(allow([Method::Put].into_iter()), "PUT, OPTIONS");
    }

    #[test]
    fn a_pattern_that_is_none_is_a_broken_rule() {
        for pattern in ["", "a", "/*/a", "/a*", "*", "/%61", "/a?b"] {
            let make = move || Router::new().get(pattern, ());
            let panic = std::panic::catch_unwind(make).expect_err(pattern);
            let message = traps::threads::panic_message(&*panic).to_owned();
            assert!(message.starts_with("rule: a pattern is"), "{message}");
        }
        let twice = || Router::new().get("/", ()).get("/", ());
        assert!(std::panic::catch_unwind(twice).is_err());
    }
}
