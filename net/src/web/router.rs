//! Which route a request takes, by its path and its method, and the answers where there is none.
//!
//! A table of values: what is done for a route is the handler's `match`. It may not answer for a
//! route that there is.

use super::form::Form;
use crate::http::{Method, Request, Response};

/// Paths, the methods that each has, and a value for each of both.
///
/// A pattern is a whole path, as in `/tasks`, or ends in `/*` and stands for all that begins so, as
/// in `/files/*`; a whole path goes before those, and a longer beginning before a shorter one. What
/// the client wrote with percent signs means the same. Looking up allocates nothing and costs a
/// comparison for each path above the one found.
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
    /// Whole paths, which go first.
    whole: Vec<Path<T>>,
    /// Beginnings, the longest first.
    begun: Vec<Path<T>>,
    /// Of the paths that come.
    form: Form,
}

#[derive(Clone, Debug)]
struct Path<T> {
    /// What of its pattern is compared: all, or what is before the `*`.
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
    /// One without paths.
    #[must_use]
    pub fn new() -> Router<T> {
        Router { whole: Vec::new(), begun: Vec::new(), form: Form::Text }
    }

    /// Sets the form of the paths that are added after it, and of the answer for a path that there
    /// is not if it is the last. It is [`Form::Text`] at first.
    #[must_use]
    pub fn form(mut self, form: Form) -> Router<T> {
        self.form = form;
        self
    }

    /// A route for GET and HEAD.
    ///
    /// # Panics
    ///
    /// As [`Router::on`].
    #[must_use]
    pub fn get(self, pattern: &'static str, route: T) -> Router<T> {
        self.on(Method::Get, pattern, route)
    }

    /// A route for POST.
    ///
    /// # Panics
    ///
    /// As [`Router::on`].
    #[must_use]
    pub fn post(self, pattern: &'static str, route: T) -> Router<T> {
        self.on(Method::Post, pattern, route)
    }

    /// A route for any method.
    ///
    /// # Panics
    ///
    /// If the pattern does not begin with `/`, has a `*` that is not the whole of its last segment,
    /// or a `%`, `?` or `#`; if there is that route already.
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

    /// The route of a request, which from now on is
    /// [answered in the form](Request::set_error_page) of its path.
    ///
    /// # Errors
    ///
    /// The answer to be given: 404 for a path that there is not, 405 with `Allow` for a method that
    /// the path has not, and for OPTIONS, where no route is for it, 204 with `Allow`; for `*` with
    /// the methods of all paths.
    // What it gives is large, and is moved nowhere then.
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

    /// The path that `asked` is, and where in it what the pattern names ends.
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

    /// The path of a target with percent signs: decoded, it may begin with a longer path.
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
    /// The answer to a method that it has not.
    #[cold]
    fn refuse(&self, method: Method) -> Response {
        if method == Method::Options {
            return options(&self.allow);
        }
        let answer = self.form.error(405, "the method is not allowed here\n");
        allowing(answer, &self.allow)
    }
}

/// Where `pattern` ends in `path`, whose percent signs are decoded; but a slash that is written so
/// is none.
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

/// What `%` and these two stand for.
pub(crate) fn hex(high: u8, low: u8) -> Option<u8> {
    let digit = |byte: u8| char::from(byte).to_digit(16);
    u8::try_from(digit(high)? << 4 | digit(low)?).ok()
}

/// The value of an `Allow` field. What has GET has HEAD, and every path has OPTIONS.
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

/// A route that was found.
#[derive(Debug)]
pub struct Found<'r, T> {
    /// What it was added with.
    pub route: &'r T,
    rest: usize,
}

impl<T> Found<'_, T> {
    /// What stands for the `*` of the pattern, as it came: percent signs are not decoded. Empty
    /// for a whole path.
    #[must_use]
    pub fn rest<'q, S>(&self, request: &'q Request<'_, S>) -> &'q str {
        &request.path()[self.rest..]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Which route a path finds, and what is left for the `*` of its pattern.
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
