//! The service on the virtual clock: a statement takes 2 ms by the script of the machine, and the
//! connection is a pipe in memory.

use std::collections::BTreeMap;
use std::path::Path;
use std::time::Duration;

use kernel::Sim;
use net::http::{Config, serve_connection};
use net::pipe::{PipeEnd, duplex};
use net::web::{Client, ClientRequest};
use serde_json::{Value, json};
use testing::{Ran, Setup};
use trapline_example_notes::middleware::{Authenticated, Numbered};
use trapline_example_notes::{Notes, Store};
use traps::spawn;

const STATEMENT: Duration = Duration::from_millis(2);

/// A status, the number of the request, and the JSON of the body.
type Seen = (u16, String, Value);

/// Sends each request of a list (user, method, target, body) on one connection.
fn talk(requests: &[(&str, &str, &str, Value)]) -> Ran<Vec<Seen>> {
    Setup::new().sim(Sim::new().jobs_take(STATEMENT)).run(async {
        let (server, client) = duplex(4096);
        let store = Store::open(Path::new(":memory:")).unwrap();
        let names = ["ann", "bob"].map(|name| (format!("token-{name}"), name.to_owned()));
        let handler = Numbered::new(Authenticated::new(Notes::new(store), BTreeMap::from(names)));
        let config = Config::default();
        let serve = async move { serve_connection(server, &handler, &config).await };
        let mut connection = spawn("conn", serve).await;
        let mut client = Client::new(client);
        let mut seen = Vec::new();
        for (user, method, target, body) in requests {
            seen.push(ask(&mut client, (user, method, target), body).await);
        }
        drop(client);
        connection.join().await.unwrap().unwrap();
        seen
    })
}

async fn ask(
    client: &mut Client<PipeEnd>,
    (user, method, target): (&str, &str, &str),
    body: &Value,
) -> Seen {
    let mut request = ClientRequest::new(method, "notes", target).unwrap();
    request = request.header("Authorization", format!("Bearer token-{user}")).unwrap();
    if !body.is_null() {
        request = request.header("Content-Type", "application/json").unwrap();
        request = request.with_body(body.to_string());
    }
    let mut response = client.send(&request).await.unwrap();
    let id =
        String::from_utf8(response.header("X-Request-Id").unwrap_or_default().to_vec()).unwrap();
    let body = response.body_to_vec(4096).await.unwrap();
    (response.status(), id, serde_json::from_slice(&body).unwrap_or(Value::Null))
}

#[test]
fn a_note_is_added_shown_found_and_removed_by_its_user_alone() {
    let none = Value::Null;
    let ran = talk(&[
        ("ann", "POST", "/notes", json!({ "text": "milk & bread" })),
        ("ann", "POST", "/notes", json!({ "text": "tea" })),
        ("ann", "GET", "/notes/1", none.clone()),
        ("ann", "GET", "/notes?text=milk+%26", none.clone()),
        ("bob", "GET", "/notes", none.clone()),
        ("bob", "DELETE", "/notes/1", none.clone()),
        ("ann", "DELETE", "/notes/1", none.clone()),
        ("ann", "GET", "/notes/1", none.clone()),
    ]);
    let milk = json!({ "id": 1, "text": "milk & bread" });
    let no_note = json!({ "error": "there is no such note" });
    let wanted = [
        (201, "1", milk.clone()),
        (201, "2", json!({ "id": 2, "text": "tea" })),
        (200, "3", milk.clone()),
        (200, "4", json!([milk])),
        (200, "5", json!([])),
        (404, "6", no_note.clone()),
        (204, "7", none),
        (404, "8", no_note),
    ];
    assert_eq!(ran.output, wanted.map(|(status, id, body)| (status, id.to_owned(), body)));
    assert_eq!(ran.took, 8 * STATEMENT);
}

#[test]
fn a_request_that_is_refused_runs_no_statement() {
    let body = |text: &str| json!({ "text": text });
    let ran = talk(&[
        ("eve", "GET", "/notes", Value::Null),
        ("ann", "POST", "/notes", json!({ "title": "milk" })),
        ("ann", "GET", "/notes/milk", Value::Null),
        ("ann", "PATCH", "/notes/1", Value::Null),
        ("ann", "POST", "/notes", body(&"x".repeat(16 * 1024))),
    ]);
    let statuses: Vec<u16> = ran.output.iter().map(|(status, ..)| *status).collect();
    assert_eq!(statuses, [401, 400, 404, 405, 413]);
    let ids: Vec<&str> = ran.output.iter().map(|(_, id, _)| &**id).collect();
    assert_eq!(ids, ["1", "2", "3", "4", "5"], "also of the responses that the server makes");
    let why = "the JSON of the body: missing field `text` at line 1 column 16";
    assert_eq!(ran.output[1].2, json!({ "error": why }));
    assert!(!ran.trace.contains("offload"), "{}", ran.trace);
}

#[test]
fn the_program_answers_help_and_refuses_an_option_that_it_does_not_have() {
    let check = support::examples::answer_help_and_refuse_what_is_wrong;
    assert_eq!(check("examples/notes", Some("trapline-example-notes")), 1);
}
