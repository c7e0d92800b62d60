//! axum, by hyper's server: the example `axum_server`.

#[allow(dead_code, unreachable_pub, reason = "what the tests call is a part")]
#[path = "../../../../examples/hyper/axum_server.rs"]
mod axum_server;

use std::time::Duration;

use ::axum::body::Body;
use ::hyper::Request;
use ::hyper::client::conn::http1::handshake;
use ::tower::ServiceExt;
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use kernel::{Options, Sim};
use net::Stream;
use net::interop::Compat;
use net::pipe::duplex;
use testing::Setup;
use traps::{Signal, Time, spawn};

use super::{loopback, run};

#[test]
fn handlers_of_axum_share_state_without_a_lock_and_make_traps() {
    let seen = run(async {
        let (client, accepted) = loopback().await;
        let serve = axum_server::connection(accepted, axum_server::router());
        let mut server = spawn("server", serve).await;
        let (mut sender, connection) = handshake(Compat::new(client)).await.unwrap();
        spawn("client", connection).detached().await;
        let mut seen = Vec::new();
        for (method, path, body) in [
            ("POST", "/notes", "tea"),
            ("POST", "/notes", "milk"),
            ("GET", "/notes/0", ""),
            ("GET", "/notes/2", ""),
            ("GET", "/notes/one", ""),
            ("DELETE", "/notes/0", ""),
            ("GET", "/slow", ""),
        ] {
            let request = Request::builder().method(method).uri(path).header("Host", "x");
            let request = request.body(Full::<Bytes>::from(body)).unwrap();
            let response = sender.send_request(request).await.unwrap();
            let status = response.status().as_u16();
            let body = response.into_body().collect().await.unwrap().to_bytes();
            seen.push((status, String::from_utf8(body.to_vec()).unwrap()));
        }
        drop(sender);
        server.join().await.unwrap().unwrap();
        seen
    });
    let statuses: Vec<u16> = seen.iter().map(|(status, _)| *status).collect();
    assert_eq!(statuses, [200, 200, 200, 404, 400, 405, 200], "{seen:?}");
    assert_eq!([&*seen[0].1, &*seen[1].1, &*seen[2].1], ["0\n", "1\n", "tea"]);
    assert!(seen[6].1.ends_with('\n'), "a time: {seen:?}");
}

#[test]
fn a_router_of_axum_needs_no_socket_and_no_real_time_in_a_test() {
    let ran = testing::run(async {
        let request = Request::get("/slow").body(Body::empty()).unwrap();
        let response = axum_server::router().oneshot(request).await.unwrap();
        response.into_body().collect().await.unwrap().to_bytes()
    });
    assert_eq!(ran.output, "0.500000\n");
}

#[test]
fn half_a_header_section_delays_a_shutdown_by_two_seconds() {
    let second = Duration::from_secs(1);
    let sim = Sim::new().signal_at(Time::ZERO + second, Signal::Interrupt);
    let options = Options::new().shutdown_on(&[Signal::Interrupt]);
    let ran = Setup::new().sim(sim).options(options).run(async {
        let (mut client, server) = duplex(4096);
        client.write_all(b"GET /notes/0 HTTP/1.1\r\nHost:").await.unwrap();
        axum_server::connection(server, axum_server::router()).await.unwrap();
        drop(client);
    });
    assert_eq!(ran.took, 3 * second);
}
