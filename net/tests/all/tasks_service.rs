use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io;

use net::Stream;
use net::http::{Handler, Method, Rejection, Request, RequestHead, Response};
use net::web::{Form, Router};
use serde::{Deserialize, Serialize};

#[derive(Clone, Deserialize, Serialize)]
struct Task {
    title: String,
}

#[derive(Clone, Copy)]
enum Route {
    List,
    Put,
    Show,
}

struct Tasks {
    routes: Router<Route>,
    tasks: RefCell<BTreeMap<u64, Task>>,
}

impl Tasks {
    fn new() -> Tasks {
        let routes = Router::new()
            .form(Form::Json)
            .get("/tasks", Route::List)
            .on(Method::Put, "/tasks/{id}", Route::Put)
            .get("/tasks/{id}", Route::Show);
        Tasks { routes, tasks: RefCell::default() }
    }

    fn list(&self, head: &RequestHead) -> io::Result<Response> {
        let part = head.query_value("title").unwrap_or_default();
        let tasks = self.tasks.borrow();
        let found: Vec<&Task> = tasks.values().filter(|task| task.title.contains(&*part)).collect();
        Response::json(&found)
    }

    fn put(&self, head: &RequestHead, task: Task) -> io::Result<Response> {
        self.tasks.borrow_mut().insert(id(head)?, task);
        Ok(Response::new(204))
    }

    fn show(&self, head: &RequestHead) -> io::Result<Response> {
        let tasks = self.tasks.borrow();
        Response::json(tasks.get(&id(head)?).ok_or_else(no_task)?)
    }
}

fn id(head: &RequestHead) -> io::Result<u64> {
    Ok(head.param("id").and_then(|id| id.parse().ok()).ok_or_else(no_task)?)
}

fn no_task() -> Rejection {
    Rejection::new(404, "there is no such task\n")
}

impl Handler for Tasks {
    async fn handle<S: Stream>(&self, request: &mut Request<'_, S>) -> io::Result<Response> {
        let route = match self.routes.find(request) {
            Ok(route) => route,
            Err(response) => return Ok(response),
        };
        match route {
            Route::List => self.list(request),
            Route::Put => {
                let task = request.json(1024).await?;
                self.put(request, task)
            }
            Route::Show => self.show(request),
        }
    }
}

use std::process::ExitCode;
use std::rc::Rc;

use kernel::Options;
use net::TcpListener;
use net::http::{Config, serve};
use traps::Signal;

async fn program() -> io::Result<()> {
    let listener = TcpListener::bind("127.0.0.1:8080")?;
    serve(listener, Rc::new(Tasks::new()), Rc::new(Config::default())).await
}

fn main() -> ExitCode {
    let options = Options::new().shutdown_on(&[Signal::Interrupt, Signal::Terminate]);
    kernel::main(options, program())
}

#[cfg(test)]
mod tests {
    use std::error::Error;

    use net::http::serve_connection;
    use net::pipe::duplex;
    use net::web::{Client, ClientRequest};
    use traps::spawn;

    use super::*;

    #[test]
    fn a_task_that_was_put_is_shown_and_found() {
        let task = r#"{"title":"a & b"}"#;
        let ran = testing::run(async {
            let (server, client) = duplex(4096);
            let (tasks, config) = (Tasks::new(), Config::default());
            let serve = async move { serve_connection(server, &tasks, &config).await };
            let mut connection = spawn("conn", serve).await;
            let mut client = Client::new(client);
            for (method, target, status, body) in [
                ("PUT", "/tasks/7", 204, ""),
                ("GET", "/tasks/7", 200, task),
                ("GET", "/tasks?title=%26+b", 200, r#"[{"title":"a & b"}]"#),
                ("GET", "/tasks/8", 404, r#"{"error":"there is no such task"}"#),
            ] {
                let mut request = ClientRequest::new(method, "localhost", target)?;
                if method == "PUT" {
                    request = request.header("Content-Type", "application/json")?.with_body(task);
                }
                let mut response = client.send(&request).await?;
                assert_eq!(response.status(), status);
                assert_eq!(response.body_to_vec(100).await?, body.as_bytes());
            }
            drop(client);
            connection.join().await??;
            Ok::<(), Box<dyn Error>>(())
        });
        ran.output.unwrap();
    }
}
