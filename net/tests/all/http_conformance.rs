//! The requirements of RFC 9112 and RFC 9110 for an origin server, by section: `rfc9112_3_2_...`
//! holds a rule of section 3.2 of RFC 9112. The page `net::guide::conformance` lists the rules.

use std::time::Duration;

use http_support::{Act, Seen, talk, talk_with};
use kernel::{Kernel, Sim};
use net::Stream;
use net::http::{Config, serve_connection};
use net::pipe::duplex;
use traps::spawn;

const KEPT: bool = false;
const CLOSED: bool = true;

fn send(request: impl AsRef<[u8]>) -> Seen {
    talk(&[Act::Send(request.as_ref())])
}

/// The statuses of the answers, and whether the server closed.
fn fate(request: impl AsRef<[u8]>) -> (Vec<u16>, bool) {
    let seen = send(request);
    (seen.statuses(), seen.closed_at.is_some())
}

fn get(fields: &str) -> String {
    format!("GET / HTTP/1.1\r\nHost: a\r\n{fields}\r\n")
}

fn post(path: &str, fields: &str, body: &str) -> String {
    format!("POST {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}")
}

fn chunked(path: &str, body: &str) -> String {
    post(path, "Transfer-Encoding: chunked\r\n", body)
}

#[track_caller]
fn all_are(status: u16, closed: bool, requests: &[&str]) {
    for request in requests {
        assert_eq!(fate(request), (vec![status], closed), "{request:?}");
    }
}

/// The text between the head and the end of the last response.
fn body(seen: &Seen) -> &str {
    seen.text.rsplit_once("\r\n\r\n").expect("a head").1
}

// ---- RFC 9112, 2: messages ---------------------------------------------------------------------

#[test]
fn rfc9112_2_2_each_byte_stands_where_the_grammar_lets_it_and_nowhere_else() {
    let token = |byte: u8| byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~".contains(&byte);
    let text = |byte: u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
    let with = |before: &str, byte: u8, after: &str| {
        [before.as_bytes(), &[byte], after.as_bytes()].concat()
    };
    for byte in 0..=255 {
        let status = |request: Vec<u8>| send(request).statuses();
        let method = status(with("G", byte, "T / HTTP/1.1\r\nHost: a\r\n\r\n"));
        let known = if byte == b'E' { 200 } else { 501 };
        assert_eq!(method, [if token(byte) { known } else { 400 }], "method {byte}");
        let target = status(with("GET /?", byte, " HTTP/1.1\r\nHost: a\r\n\r\n"));
        let good = matches!(byte, b'!'..=b'~') && byte != b'#';
        assert_eq!(target, [if good { 200 } else { 400 }], "target {byte}");
        let name = status(with("GET / HTTP/1.1\r\nHost: a\r\nX", byte, "Y: b\r\n\r\n"));
        let good = token(byte) || byte == b':';
        assert_eq!(name, [if good { 200 } else { 400 }], "name {byte}");
        let value = status(with("GET / HTTP/1.1\r\nHost: a\r\nX: a", byte, "b\r\n\r\n"));
        assert_eq!(value, [if text(byte) { 200 } else { 400 }], "value {byte}");
        let trailer = |before, after| {
            let head = chunked("/count", "0\r\n");
            status(with(&format!("{head}{before}"), byte, after))
        };
        let name = trailer("X", "Y: b\r\n\r\n");
        let good = token(byte) || byte == b':';
        assert_eq!(name, [if good { 200 } else { 400 }], "trailer name {byte}");
        let value = trailer("X: a", "b\r\n\r\n");
        assert_eq!(value, [if text(byte) { 200 } else { 400 }], "trailer value {byte}");
        let size = status(with(&chunked("/count", ""), byte, "\r\nabcdefghijklmno\r\n0\r\n\r\n"));
        let status = if matches!(byte, b'f' | b'F') { 200 } else { 400 };
        assert_eq!(size, [status], "chunk size {byte}");
    }
}

#[test]
fn rfc9112_2_2_long_lines_are_looked_at_as_short_ones_are() {
    // Long runs use other instructions than short ones.
    let text = |byte: u8| matches!(byte, b'\t' | b' '..=b'~' | 0x80..);
    for byte in 0..=255 {
        for place in [0, 7, 15, 16, 31, 33, 63, 70] {
            let mut run = [b'a'; 71];
            run[place] = byte;
            let fate = |before: &str, after: &str| {
                send([before.as_bytes(), &run, after.as_bytes()].concat()).statuses()
            };
            let target = fate("GET /?", " HTTP/1.1\r\nHost: a\r\n\r\n");
            let good = matches!(byte, b'!'..=b'~') && byte != b'#';
            assert_eq!(target, [if good { 200 } else { 400 }], "target {byte} at {place}");
            let value = fate("GET / HTTP/1.1\r\nHost: a\r\nX: .", ".\r\n\r\n");
            assert_eq!(value, [if text(byte) { 200 } else { 400 }], "value {byte} at {place}");
            let name = fate("GET / HTTP/1.1\r\nHost: a\r\nX", ": b\r\n\r\n");
            let good = byte.is_ascii_alphanumeric() || b"!#$%&'*+-.^_`|~:".contains(&byte);
            assert_eq!(name, [if good { 200 } else { 400 }], "name {byte} at {place}");
        }
    }
}

#[test]
fn rfc9112_2_2_octets_are_not_decoded() {
    let mut request = b"GET / HTTP/1.1\r\nHost: a\r\nX: \xff\xfe\xe2\x82\r\n\r\n".to_vec();
    assert_eq!(fate(&request), (vec![200], KEPT));
    request.splice(4..5, *b"/\xff");
    assert_eq!(fate(&request), (vec![400], CLOSED));
}

#[test]
fn rfc9112_2_2_a_bare_cr_is_refused_wherever_it_stands() {
    all_are(
        400,
        CLOSED,
        &[
            "GET /\r HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\rHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\rX: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX\r: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: b\r\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\n\r\r\n\r\n",
            "\rGET / HTTP/1.1\r\nHost: a\r\n\r\n",
            &chunked("/count", "1\rx\r\n0\r\n\r\n"),
            &chunked("/count", "1\r\nx\r0\r\n\r\n"),
            &chunked("/count", "1;a\rb\r\nx\r\n0\r\n\r\n"),
            &chunked("/count", "0\r\nX: a\rb\r\n\r\n"),
        ],
    );
}

#[test]
fn rfc9112_2_2_a_bare_lf_is_refused_unless_it_is_allowed() {
    let requests = [
        "GET / HTTP/1.1\nHost: a\n\n",
        "GET / HTTP/1.1\r\nHost: a\n\r\n",
        "GET / HTTP/1.1\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\r\nHost: a\r\n\n",
        "\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
        "GET / HTTP/1.1\nX:\nHost: a \n\n",
    ];
    let allowing = |request: &str| {
        let mut config = Config::default();
        config.bare_lf = true;
        let seen = talk_with(config, 1 << 20, &[Act::Send(request.as_bytes())]);
        (seen.statuses(), seen.closed_at.is_some())
    };
    all_are(400, CLOSED, &requests);
    for request in requests {
        assert_eq!(allowing(request), (vec![200], KEPT), "{request:?}");
    }
    let body =
        "POST /count HTTP/1.1\nHost: a\nContent-Length: 2\n\n\n\nGET / HTTP/1.1\nHost: a\n\n";
    assert_eq!(allowing(body), (vec![200, 200], KEPT));
    let host = allowing("GET /host HTTP/1.1\nX: y\nHost: b\n\n");
    assert_eq!(host, (vec![200], KEPT));
    for chunk in ["1\nx\r\n0\r\n\r\n", "1\r\nx\n0\r\n\r\n", "0\r\n\n", "0\r\nX: y\n\r\n"] {
        assert_eq!(allowing(&chunked("/count", chunk)), (vec![400], CLOSED), "{chunk:?}");
    }
    all_are(400, CLOSED, &[&chunked("/count", "1\nx\r\n0\r\n\r\n"), &get("X: a\nY: b\r\n")]);
}

#[test]
fn rfc9112_2_2_empty_lines_before_a_request_are_passed_over_within_a_bound() {
    let request = |lines: usize| format!("{}{}", "\r\n".repeat(lines), get(""));
    assert_eq!(fate(request(1)), (vec![200], KEPT));
    assert_eq!(fate(request(8)), (vec![200], KEPT));
    assert_eq!(fate(request(9)), (vec![400], CLOSED));
    let after_body = post("/count", "Content-Length: 1\r\n", "x\r\n") + &get("");
    assert_eq!(fate(after_body), (vec![200, 200], KEPT));
}

#[test]
fn rfc9112_2_2_white_space_before_the_first_field_is_refused() {
    all_are(
        400,
        CLOSED,
        &[
            "GET / HTTP/1.1\r\n Host: a\r\n\r\n",
            "GET / HTTP/1.1\r\n\tX: b\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1\r\n \r\nHost: a\r\n\r\n",
        ],
    );
}

#[test]
fn rfc9112_2_2_what_is_no_message_is_answered_with_400_and_the_close() {
    all_are(
        400,
        CLOSED,
        &["\x16\x03\x01\x02\0\x01", " GET / HTTP/1.1\r\n\r\n", "\0\r\n", "{}\r\n"],
    );
    let seen = send("GET /\r\n\r\n");
    assert!(seen.text.contains("\r\nConnection: close\r\n"), "{}", seen.text);
}

#[test]
fn rfc9112_2_3_the_version_is_read_to_the_letter_and_a_later_minor_one_is_served_as_1_1() {
    let with = |version: &str| fate(format!("GET / {version}\r\nHost: a\r\n\r\n"));
    assert_eq!(with("HTTP/1.0"), (vec![200], CLOSED));
    for version in ["HTTP/1.1", "HTTP/1.2", "HTTP/1.9"] {
        assert_eq!(with(version), (vec![200], KEPT), "{version}");
    }
    for version in ["HTTP/0.9", "HTTP/2.0", "HTTP/3.1", "HTTP/9.9"] {
        assert_eq!(with(version), (vec![505], CLOSED), "{version}");
    }
    for version in
        ["http/1.1", "HTTP/1.10", "HTTP/1.23", "HTTP/01.1", "HTTP/1.", "HTTP/1", "HTTP", "HTTP/a.b"]
    {
        assert_eq!(with(version), (vec![400], CLOSED), "{version}");
    }
    let later =
        "POST /count HTTP/1.7\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n2\r\nab\r\n0\r\n\r\n";
    assert_eq!(body(&send(later)), "2");
    assert_eq!(fate("GET / HTTP/1.7\r\n\r\n"), (vec![400], CLOSED), "Host is asked for too");
}

// ---- RFC 9112, 3: the request line -------------------------------------------------------------

#[test]
fn rfc9112_3_one_space_and_no_other_stands_between_the_parts() {
    all_are(
        400,
        CLOSED,
        &[
            "GET  / HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /  HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET\t/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET / HTTP/1.1 \r\nHost: a\r\n\r\n",
            "GET / x HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /\u{b}HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET HTTP/1.1\r\nHost: a\r\n\r\n",
            " / HTTP/1.1\r\nHost: a\r\n\r\n",
        ],
    );
}

#[test]
fn rfc9112_3_a_line_of_8000_bytes_is_read_and_a_longer_target_is_414_a_longer_method_501() {
    let target = |n: usize| format!("GET /{} HTTP/1.1\r\nHost: a\r\n\r\n", "x".repeat(n));
    assert_eq!(fate(target(8_000 - 14)), (vec![404], KEPT));
    assert_eq!(fate(target(9_000)), (vec![414], CLOSED));
    assert_eq!(fate(&target(9_000)[..8_900]), (vec![414], CLOSED), "before it is whole");
    let method = format!("{} / HTTP/1.1\r\nHost: a\r\n\r\n", "M".repeat(9_000));
    assert_eq!(fate(&method), (vec![501], CLOSED));
    assert_eq!(fate(&method[..8_500]), (vec![501], CLOSED), "before it is whole");
}

#[test]
fn rfc9112_3_a_line_that_is_no_request_is_not_read_on_for_ever() {
    for begin in ["GET / HTTQ", "GET / HTTP/1.1x", "GET / ", "GET / HTTP/1.2", "GET / HTTP/2.0"] {
        let flood = [begin.as_bytes(), &[b'x'; 200_000]].concat();
        let (statuses, closed) = fate(&flood);
        assert!(matches!(statuses[..], [400 | 414]) && closed, "{begin}: {statuses:?}");
    }
}

#[test]
fn rfc9112_3_2_a_1_1_request_has_one_host_field_that_is_a_host() {
    let host = |value: &str| fate(format!("GET / HTTP/1.1\r\nHost:{value}\r\n\r\n"));
    let good = [
        " a",
        "a",
        " a:80",
        " a:",
        " a:000080",
        " a:65535",
        " [::1]",
        " [::1]:80",
        "",
        " ",
        " 127.0.0.1",
        " %41",
        "\ta\t",
    ];
    for good in good {
        assert_eq!(host(good), (vec![200], KEPT), "{good:?}");
    }
    let bad = [
        " a b",
        " a/b",
        " u@a",
        " a:b",
        " a:80:80",
        " a:65536",
        " a:+80",
        " [::1]:65536",
        " :80",
        " :",
        " [::1",
        " [a]",
        " http://a",
        " a?b",
        " a#b",
        " \"a\"",
        " a\\b",
        " <a>",
        " a\u{e9}",
        " a, b",
    ];
    for bad in bad {
        assert_eq!(host(bad), (vec![400], CLOSED), "{bad:?}");
    }
    all_are(
        400,
        CLOSED,
        &[
            "GET / HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.1\r\nX-Host: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nhost: a\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nX: y\r\nHOST: b\r\n\r\n",
            "GET / HTTP/1.1\r\nHost: a\r\nHost:\r\n\r\n",
            "GET http://a/ HTTP/1.1\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: a b\r\n\r\n",
            "GET / HTTP/1.0\r\nHost: a\r\nHost: a\r\n\r\n",
        ],
    );
    assert_eq!(fate("GET / HTTP/1.0\r\n\r\n"), (vec![200], CLOSED));
}

#[test]
fn rfc9112_3_2_2_the_host_of_an_absolute_target_is_the_host_whatever_the_field_says() {
    let host = |target: &str, field: &str| {
        let seen = send(format!("GET {target} HTTP/1.1\r\nHost: {field}\r\n\r\n"));
        body(&seen).to_owned()
    };
    assert_eq!(host("/host", "a:80"), "a:80");
    assert_eq!(host("http://b/host", "a"), "b");
    assert_eq!(host("HTTP://b:8443/host?x", "a"), "b:8443");
    assert_eq!(host("http://[::1]/host", ""), "[::1]");
    let old = send("GET /host HTTP/1.0\r\n\r\n");
    assert_eq!(body(&old), "none");
    all_are(
        200,
        KEPT,
        &[
            "GET http://a HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://a?b HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET hTtP://a/?b HTTP/1.1\r\nHost: other\r\n\r\n",
        ],
    );
}

#[test]
fn rfc9110_4_2_3_a_target_and_a_host_field_take_the_same_hosts_and_ports() {
    for host in ["a", "a:", "a:0", "a:80", "a:000080", "a:65535", "[::1]:65535"] {
        let target = fate(format!("GET http://{host}/ HTTP/1.1\r\nHost: a\r\n\r\n"));
        let field = fate(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!((target, field), ((vec![200], KEPT), (vec![200], KEPT)), "{host}");
    }
    for host in [":", ":80", "a:65536", "a:000065536", "a:4294967376", "a:+80", "[::1]:99999"] {
        let target = fate(format!("GET http://{host}/ HTTP/1.1\r\nHost: a\r\n\r\n"));
        let field = fate(format!("GET / HTTP/1.1\r\nHost: {host}\r\n\r\n"));
        assert_eq!((target, field), ((vec![400], CLOSED), (vec![400], CLOSED)), "{host}");
    }
}

#[test]
fn rfc9110_4_2_an_absolute_target_has_a_known_scheme_a_host_and_no_user() {
    all_are(
        400,
        CLOSED,
        &[
            "GET http:/// HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://:80/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://u:p@a/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http:/a HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET file:///etc HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://a b/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET http://a\\b/ HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET /a#b HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET a HTTP/1.1\r\nHost: a\r\n\r\n",
            "GET ?a HTTP/1.1\r\nHost: a\r\n\r\n",
        ],
    );
}

#[test]
fn rfc9112_3_2_3_an_authority_alone_is_for_connect_which_is_not_known() {
    all_are(400, CLOSED, &["GET a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n"]);
    all_are(
        501,
        CLOSED,
        &[
            "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\n\r\n",
            "CONNECT / HTTP/1.1\r\nHost: a\r\n\r\n",
            "CONNECT a:80 HTTP/1.1\r\nHost: a:80\r\nContent-Length: 3\r\n\r\nabc",
        ],
    );
}

#[test]
fn rfc9112_3_2_4_the_asterisk_is_for_options() {
    all_are(204, KEPT, &["OPTIONS * HTTP/1.1\r\nHost: a\r\n\r\n"]);
    all_are(204, KEPT, &["OPTIONS http://a:80 HTTP/1.1\r\nHost: a\r\n\r\n"]);
    all_are(405, KEPT, &["OPTIONS http://a/ HTTP/1.1\r\nHost: a\r\n\r\n"]);
    all_are(
        400,
        CLOSED,
        &[
            "GET * HTTP/1.1\r\nHost: a\r\n\r\n",
            "OPTIONS ** HTTP/1.1\r\nHost: a\r\n\r\n",
            "OPTIONS *?a HTTP/1.1\r\nHost: a\r\n\r\n",
        ],
    );
}

// ---- RFC 9112, 5 and RFC 9110, 5: fields -------------------------------------------------------

#[test]
fn rfc9112_5_1_white_space_around_a_value_is_no_part_of_it_and_before_the_colon_refused() {
    for value in ["a", " a", "\ta", " \t a \t ", "a "] {
        let seen = send(format!("GET /host HTTP/1.1\r\nHost:{value}\r\n\r\n"));
        assert_eq!(body(&seen), "a", "{value:?}");
    }
    all_are(
        400,
        CLOSED,
        &[
            &get("X : a\r\n"),
            &get("X\t: a\r\n"),
            "GET / HTTP/1.1\r\nHost : a\r\n\r\n",
            &post("/count", "Content-Length : 1\r\n", "x"),
            &post("/count", "Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
        ],
    );
}

#[test]
fn rfc9112_5_1_a_line_without_a_name_or_a_colon_is_refused_and_not_dropped() {
    let lines =
        [": a\r\n", "X\r\n", "X y\r\n", "\u{e9}: a\r\n", "\"X\": a\r\n", "X(y): a\r\n", "@: a\r\n"];
    for line in lines {
        assert_eq!(fate(get(line)), (vec![400], CLOSED), "{line:?}");
    }
}

#[test]
fn rfc9112_5_2_a_folded_line_is_refused() {
    all_are(
        400,
        CLOSED,
        &[
            &get("X: a\r\n b\r\n"),
            &get("X: a\r\n\tb\r\n"),
            &get("X: a\r\n \r\n"),
            &post("/count", "Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"),
            &chunked("/count", "0\r\nX: a\r\n b\r\n\r\n"),
        ],
    );
}

#[test]
fn rfc9110_5_1_names_have_no_case_and_unknown_fields_are_let_pass() {
    let upper = "GET /host HTTP/1.1\r\nHOST: b\r\nX-UNKNOWN: ?\r\nA!#$%&'*+-.^_`|~9: \r\n\r\n";
    assert_eq!(fate(get("TE: trailers, deflate;q=0.5\r\nConnection: TE\r\n")), (vec![200], KEPT));
    assert_eq!(body(&send(upper)), "b");
    let length = post("/count", "cOnTeNt-LeNgTh: 2\r\n", "ab");
    assert_eq!(body(&send(length)), "2");
}

#[test]
fn rfc9110_5_4_fields_without_end_are_431() {
    assert_eq!(fate(get(&"A: b\r\n".repeat(99))), (vec![200], KEPT));
    assert_eq!(fate(get(&"A: b\r\n".repeat(100))), (vec![431], CLOSED));
    let long = format!("GET / HTTP/1.1\r\nHost: a\r\nX: {}", "x".repeat(200_000));
    assert_eq!(fate(long), (vec![431], CLOSED));
    let name = format!("GET / HTTP/1.1\r\nHost: a\r\n{}", "x".repeat(200_000));
    assert_eq!(fate(name), (vec![431], CLOSED));
}

#[test]
fn rfc9110_5_6_1_empty_members_of_a_list_do_not_count() {
    assert_eq!(fate(get("Connection: , ,close,\r\n")), (vec![200], CLOSED));
    assert_eq!(fate(get("Connection: closed, xclose\r\n")), (vec![200], KEPT));
    assert_eq!(fate(get("Connection: x\r\nConnection: CLOSE\r\n")), (vec![200], CLOSED));
    assert_eq!(fate(get("Expect: ,\r\n")), (vec![200], KEPT));
}

// ---- RFC 9112, 6: how long a body is -----------------------------------------------------------

#[test]
fn rfc9112_6_1_chunked_is_the_only_coding_and_is_last_and_alone() {
    let with = |value: &str| {
        fate(post("/count", &format!("Transfer-Encoding:{value}\r\n"), "1\r\nx\r\n0\r\n\r\n"))
    };
    for good in [" chunked", "chunked", " CHUNKED", " \tchunked \t"] {
        assert_eq!(with(good), (vec![200], KEPT), "{good:?}");
    }
    for unknown in [
        " gzip, chunked",
        " x,chunked",
        " identity, chunked",
        ", chunked",
        " gzip\r\nTransfer-Encoding: chunked",
        " identity\r\nTransfer-Encoding: chunked",
        " gzip\r\nTransfer-Encoding: br, chunked",
    ] {
        assert_eq!(with(unknown), (vec![501], CLOSED), "{unknown:?}");
    }
    let bad = [
        "",
        " gzip",
        " identity",
        " chunked, gzip",
        " chunked, chunked",
        " chunked,",
        " \"chunked\"",
        " chunked;q=1",
        " chunkedx",
        " xchunked",
        " chunk",
        " chun ked",
        " chunked\u{b}",
        " chunked\r\nTransfer-Encoding: chunked",
        " chunked\r\nTransfer-Encoding: identity",
        " gzip\r\nTransfer-Encoding: identity",
    ];
    for bad in bad {
        assert_eq!(with(bad), (vec![400], CLOSED), "{bad:?}");
    }
}

#[test]
fn rfc9112_6_1_transfer_encoding_in_1_0_is_faulty_framing() {
    all_are(
        400,
        CLOSED,
        &[
            "POST /count HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            "POST /count HTTP/1.0\r\nConnection: keep-alive\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
        ],
    );
}

#[test]
fn rfc9112_6_1_nothing_is_sent_in_chunks_to_1_0() {
    let seen = send("GET /stream HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
    assert!(!seen.text.contains("chunked"), "{}", seen.text);
    assert_eq!((body(&seen), seen.closed_at.is_some()), ("one and two", CLOSED));
}

#[test]
fn rfc9112_6_2_a_content_length_is_digits_once_and_within_bounds() {
    let with = |value: &str| fate(post("/count", &format!("Content-Length:{value}\r\n"), "abc"));
    for good in [" 3", "3", " 003", "\t3\t", " 00000000000000000000000000003"] {
        assert_eq!(with(good), (vec![200], KEPT), "{good:?}");
    }
    let bad = [
        "",
        " ",
        " +3",
        " -3",
        " 3.0",
        " 3e0",
        " 0x3",
        " 3 3",
        " 3,3",
        " 3, 3",
        " 3;",
        " \"3\"",
        " three",
        " 3\r\nContent-Length: 3",
        " 3\r\nContent-Length: 4",
        " 3\r\nContent-Length:",
        " \u{663}",
        " 18446744073709551616",
        " 99999999999999999999999",
        " 3_0",
        " 3\u{b}",
    ];
    for bad in bad {
        assert_eq!(with(bad), (vec![400], CLOSED), "{bad:?}");
    }
    assert_eq!(with(" 18446744073709551615"), (vec![413], CLOSED));
}

#[test]
fn rfc9112_6_3_both_length_and_coding_are_refused() {
    for fields in [
        "Content-Length: 5\r\nTransfer-Encoding: chunked\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 5\r\n",
        "Transfer-Encoding: chunked\r\nContent-Length: 0\r\n",
        "transfer-encoding: Chunked\r\nX: y\r\ncontent-length: 5\r\n",
    ] {
        let request = post("/count", fields, "0\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(fate(request), (vec![400], CLOSED), "{fields:?}");
    }
}

#[test]
fn rfc9112_6_3_without_either_there_is_no_body() {
    let two = post("/count", "", "GET / HTTP/1.1\r\nHost: a\r\n\r\n");
    assert_eq!(fate(two), (vec![200, 200], KEPT));
    let zero = post("/count", "Content-Length: 0\r\n", &get(""));
    assert_eq!(fate(zero), (vec![200, 200], KEPT));
    let of_get = format!("GET / HTTP/1.1\r\nHost: a\r\nContent-Length: 3\r\n\r\nabc{}", get(""));
    assert_eq!(fate(of_get), (vec![200, 200], KEPT), "a GET may have one, and it is read past");
}

#[test]
fn rfc9112_6_3_a_refused_request_is_the_last_one() {
    let hidden = get("X : y\r\n") + &get("");
    assert_eq!(fate(hidden), (vec![400], CLOSED));
    let after = post("/count", "Content-Length: 1x\r\n", &get(""));
    assert_eq!(fate(after), (vec![400], CLOSED));
    let length = post("/count", "Content-Length: 9000000\r\n", &get(""));
    assert_eq!(fate(length), (vec![413], CLOSED));
}

#[test]
fn rfc9112_8_a_message_that_breaks_off_is_answered_with_400_and_never_served() {
    for cut in [
        "GET / HTTP/1.1\r\nHost: a\r\n",
        "GET / HTTP/1.1",
        "G",
        &post("/count", "Content-Length: 4\r\n", "abc"),
        &chunked("/count", "3\r\nab"),
        &chunked("/count", "3\r\nabc\r\n0\r\n"),
        &chunked("/count", "3\r\nabc\r\n0\r\nX: y\r\n"),
    ] {
        let seen = talk(&[Act::Send(cut.as_bytes()), Act::Finish]);
        assert_eq!((seen.statuses(), seen.closed_at.is_some()), (vec![400], CLOSED), "{cut:?}");
    }
}

// ---- RFC 9112, 7: chunks -----------------------------------------------------------------------

#[test]
fn rfc9112_7_1_chunks_are_joined_and_what_follows_is_the_next_request() {
    let request =
        chunked("/count", "1\r\na\r\n00A\r\n0123456789\r\na\r\n0123456789\r\n000\r\n\r\n");
    let seen = send(request + &get(""));
    assert_eq!((seen.statuses(), seen.closed_at), (vec![200, 200], None));
    assert!(seen.text.contains("\r\n\r\n21HTTP/1.1"), "{}", seen.text);
}

#[test]
fn rfc9112_7_1_a_size_is_hexadecimal_digits_that_do_not_overflow() {
    for size in [
        "",
        " 1",
        "+1",
        "-1",
        "0x1",
        "1h",
        "1.",
        "g",
        "1\u{b}",
        "\u{661}",
        "1 ",
        "1\t",
        "00000000000000001",
        "10000000000000000",
        "fffffffffffffffff",
        "0000000000000000000000000000000000000",
    ] {
        assert_eq!(
            fate(chunked("/count", &format!("{size}\r\nx\r\n0\r\n\r\n"))).0,
            [400],
            "{size:?}"
        );
    }
    assert_eq!(fate(chunked("/count", "ffffffffffffffff\r\nx")).0, [0; 0], "waits for the rest");
    let most = chunked("/count", &format!("{:x}\r\n{}", 9 << 20, "x".repeat(9 << 20)));
    assert_eq!(fate(most), (vec![413], CLOSED));
}

#[test]
fn rfc9112_7_1_a_chunk_ends_where_its_size_says() {
    for wrong in [
        "3\r\nabcd\r\n0\r\n\r\n",
        "3\r\nab\r\n0\r\n\r\n",
        "3\r\nabc0\r\n\r\n",
        "3\r\nabc\n0\r\n\r\n",
    ] {
        assert_eq!(fate(chunked("/count", wrong)), (vec![400], CLOSED), "{wrong:?}");
    }
}

#[test]
fn rfc9112_7_1_1_extensions_are_passed_over_within_a_bound() {
    for good in [";a", ";a=b", " ; a = b", ";a=\"b;\\\"\"", ";a;b"] {
        let request = chunked("/count", &format!("1{good}\r\nx\r\n0{good}\r\n\r\n"));
        assert_eq!(fate(request), (vec![200], KEPT), "{good:?}");
    }
    for bad in [";", ";=a", ";a=", ";a b", ";a=\"b", ";\u{1}"] {
        let request = chunked("/count", &format!("1{bad}\r\nx\r\n0\r\n\r\n"));
        assert_eq!(fate(request), (vec![400], CLOSED), "{bad:?}");
    }
    let long = |n: usize| chunked("/count", &format!("1;{}\r\nx\r\n0\r\n\r\n", "a".repeat(n - 1)));
    assert_eq!(fate(long(4096)), (vec![200], KEPT));
    assert_eq!(fate(long(4097)), (vec![413], CLOSED));
    let many = chunked("/count", &"1;aaaaaaaaa\r\nx\r\n".repeat(500));
    assert_eq!(fate(many), (vec![413], CLOSED), "all chunks together");
    let chunk = format!("400;chunk-signature={}\r\n{}\r\n", "f".repeat(64), "x".repeat(1024));
    let signed = chunked("/count", &format!("{}0\r\n\r\n", chunk.repeat(100)));
    assert_eq!(fate(signed), (vec![200], KEPT), "an eighth of the data");
}

#[test]
fn rfc9112_7_1_2_trailers_are_given_to_the_handler_apart_from_the_fields_within_a_bound() {
    let with = |lines: &str| send(chunked("/trailers", &format!("1\r\nx\r\n0\r\n{lines}\r\n")));
    assert_eq!(body(&with("X: a\r\n")), "a false");
    assert_eq!(body(&with("Y: b\r\nx:  c \r\nX:\r\n")), "c| false");
    assert_eq!(body(&with("")), " false");
    let harmless =
        with("Content-Length: 5\r\nTransfer-Encoding: gzip\r\nHost: b\r\nConnection: close\r\n");
    assert_eq!((harmless.statuses(), harmless.closed_at), (vec![200], None));
    let long = |n: usize| chunked("/count", &format!("0\r\nX:{}\r\n\r\n", "a".repeat(n - 2)));
    assert_eq!(fate(long(16 * 1024)), (vec![200], KEPT));
    assert_eq!(fate(long(16 * 1024 + 1)), (vec![431], CLOSED));
    for bad in [": a\r\n", "X\r\n", "X : a\r\n", " X: a\r\n", "X: a\r\n b\r\n", "X: a\n"] {
        let seen = with(bad);
        assert_eq!((seen.statuses(), seen.closed_at.is_some()), (vec![400], CLOSED), "{bad:?}");
    }
}

// ---- RFC 9112, 9: connections ------------------------------------------------------------------

#[test]
fn rfc9110_7_4_https_is_refused_on_a_connection_that_is_not_secured() {
    for target in ["https://a/", "HTTPS://a", "https://a:443/x?y"] {
        let seen = send(format!("GET {target} HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!((seen.statuses(), seen.closed_at.is_some()), (vec![421], CLOSED), "{target}");
    }
}

#[test]
fn rfc9110_9_3_2_a_refusal_of_head_has_no_body_however_early_it_comes() {
    let late = talk(&[Act::Send(b"HEAD / HT"), Act::Sleep(Duration::from_secs(11))]);
    let cut = talk(&[Act::Send(b"HEAD / HT"), Act::Finish]);
    for (seen, status) in [(late, 408), (cut, 400)] {
        assert_eq!(seen.statuses(), [status]);
        assert!(seen.text.ends_with("\r\n\r\n"), "{}", seen.text);
    }
}

#[test]
fn rfc9112_9_3_a_connection_persists_as_version_and_connection_field_say() {
    let old = |fields: &str| format!("GET / HTTP/1.0\r\n{fields}\r\n");
    assert_eq!(fate(get("")), (vec![200], KEPT));
    assert_eq!(fate(get("Connection: close\r\n")), (vec![200], CLOSED));
    assert_eq!(fate(get("Connection: keep-alive, close\r\n")), (vec![200], CLOSED));
    assert_eq!(fate(old("")), (vec![200], CLOSED));
    assert_eq!(fate(old("Connection: keep-alive\r\n")), (vec![200], KEPT));
    assert_eq!(fate(old("Connection: keep-alive, close\r\n")), (vec![200], CLOSED));
    let seen = send(old("Connection: keep-alive\r\n"));
    assert!(seen.text.contains("\r\nConnection: keep-alive\r\n"), "{}", seen.text);
}

#[test]
fn rfc9112_9_3_the_whole_body_is_read_or_the_connection_closes() {
    let ignored = post("/ignore", "Content-Length: 3\r\n", "abc") + &get("");
    assert_eq!(fate(ignored), (vec![200, 200], KEPT));
    let in_chunks = chunked("/ignore", "3\r\nabc\r\n0\r\nX: y\r\n\r\n") + &get("");
    assert_eq!(fate(in_chunks), (vec![200, 200], KEPT));
    let of_get = chunked("/", "3\r\nabc\r\n0\r\n\r\n").replacen("POST", "GET", 1) + &get("");
    assert_eq!(fate(of_get), (vec![200, 200], KEPT));
    let too_much = post("/ignore", "Content-Length: 1000000\r\n", &"x".repeat(1_000));
    assert_eq!(fate(too_much), (vec![200], CLOSED));
    let broken = chunked("/ignore", "3\r\nabcd\r\n") + &get("");
    assert_eq!(fate(broken), (vec![200], CLOSED));
}

/// How much a handler will read while it streams is not known when the head of its response goes
/// out. So the head announces that the connection stays open, and it does if little enough is left.
#[test]
fn rfc9112_9_3_a_streamed_answer_that_said_so_stays_where_the_body_was_left() {
    let streamed = |fields: &str, body: &str| {
        let head = format!("POST /forbidden HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}");
        let seen = send(head + &get(""));
        assert!(!seen.text.contains("\r\nConnection: close\r\n"), "{}", seen.text);
        (seen.statuses(), seen.closed_at.is_some())
    };
    let chunked = "Transfer-Encoding: chunked\r\n";
    assert_eq!(streamed(chunked, "3\r\nabc\r\n0\r\nX: y\r\n\r\n"), (vec![403, 200], KEPT));
    assert_eq!(streamed("Content-Length: 3\r\n", "abc"), (vec![403, 200], KEPT));
    assert_eq!(streamed(chunked, "3\r\nabcd\r\n"), (vec![403], CLOSED));
    let long = format!("30000\r\n{}\r\n0\r\n\r\n", "x".repeat(0x30000));
    assert_eq!(streamed(chunked, &long), (vec![403], CLOSED));
}

#[test]
fn rfc9112_9_3_2_pipelined_requests_are_answered_in_order() {
    let all: String =
        ["x", "y", "z"].map(|host| format!("GET /host HTTP/1.1\r\nHost: {host}\r\n\r\n")).concat();
    let seen = send(all);
    assert_eq!(seen.statuses(), [200, 200, 200]);
    let places = ["\r\n\r\nxH", "\r\n\r\nyH", "\r\n\r\nz"].map(|part| seen.text.find(part));
    assert!(places.is_sorted() && places[0].is_some(), "{}", seen.text);
}

#[test]
fn rfc9112_9_6_nothing_is_served_after_an_answer_that_closes() {
    for last in [get("Connection: close\r\n"), "GET /bye HTTP/1.1\r\nHost: a\r\n\r\n".to_owned()] {
        let seen = send(last + &get(""));
        assert_eq!((seen.statuses(), seen.closed_at.is_some()), (vec![200], CLOSED));
        assert!(seen.text.contains("\r\nConnection: close\r\n"), "{}", seen.text);
    }
}

#[test]
fn rfc9112_9_6_the_server_ends_its_direction_first_and_reads_on_for_a_while() {
    let piece = [b'x'; 1_000];
    let head = post("/count", "Content-Length: 9000000\r\n", "");
    let pause = Act::Sleep(Duration::from_millis(10));
    let acts = [Act::Send(head.as_bytes()), pause, Act::Send(&piece), Act::Finish];
    let seen = talk(&acts);
    assert_eq!(seen.statuses(), [413]);
    assert_eq!(seen.closed_at.map(|at| at.as_micros()), Some(0), "it said so at once");
}

/// Whether the server still reads when a client that asked for the end has read its response;
/// `late` arrives while the response is made.
fn reads_on_after(target: &str, late: &[u8]) -> bool {
    let mut kernel = Kernel::new(Sim::new());
    let config = Config::default();
    let reads = kernel.run(async {
        let (server, mut client) = duplex(1 << 20);
        let request = format!("GET {target} HTTP/1.1\r\nHost: a\r\nConnection: close\r\n\r\n");
        let serve = serve_connection(server, &http_support::App, &config);
        let talk = async {
            client.write_all(request.as_bytes()).await.unwrap();
            traps::sleep(Duration::from_millis(100)).await.unwrap();
            client.write_all(late).await.unwrap();
            let mut buf = vec![0; 1 << 20];
            while client.read(&mut buf).await.unwrap() > 0 {}
            let reads = client.write(b"x").await.is_ok();
            drop(client);
            reads
        };
        let (served, reads) = traps::join(serve, talk).await;
        served.unwrap();
        reads
    });
    kernel.shutdown().unwrap();
    reads.unwrap()
}

#[test]
fn rfc9112_9_6_no_answer_is_cut_by_what_a_client_sends_after_its_last_request() {
    // It arrives too late for the read before the response, and a close with unread input is a
    // reset.
    assert!(reads_on_after("/sleep", b"x"));
    // It may arrive at any time while this much is on its way.
    assert!(reads_on_after("/big", b""));
    // As always, nothing is waited for.
    assert!(!reads_on_after("/sleep", b""));
    assert!(!reads_on_after("/stream", b""));
}

#[test]
fn rfc9112_9_6_that_while_is_bounded_in_bytes() {
    let mut kernel = Kernel::new(Sim::new());
    let sent = kernel.run(async {
        let (server, mut client) = duplex(16 * 1024);
        spawn("conn", async move {
            serve_connection(server, &http_support::App, &Config::default()).await
        })
        .await;
        let mut sent = client.write(b"GET /\r\n\r\n").await.unwrap();
        while let Ok(n) = client.write(&[b'x'; 16 * 1024]).await {
            sent += n;
        }
        sent
    });
    let sent = sent.expect("it ends");
    kernel.shutdown().expect("it shuts down");
    assert!((16 << 20..17 << 20).contains(&sent), "{sent}");
}

// ---- RFC 9110: what fields and methods mean ----------------------------------------------------

#[test]
fn rfc9110_6_6_1_each_answer_has_its_date() {
    for request in [get(""), "GET /\r\n\r\n".into(), "GET / HTTP/1.0\r\n\r\n".into()] {
        let seen = send(&request);
        let date = seen.text.split("\r\nDate: ").nth(1).expect("a date");
        let date = date.split("\r\n").next().unwrap();
        let shape: String = date
            .chars()
            .map(|c| match c {
                '0'..='9' => '0',
                'A'..='Z' => 'A',
                'a'..='z' => 'a',
                other => other,
            })
            .collect();
        assert_eq!(shape, "Aaa, 00 Aaa 0000 00:00:00 AAA", "{request:?}");
        assert!(date.ends_with(" GMT"));
    }
}

#[test]
fn rfc9110_7_8_an_upgrade_is_passed_over() {
    let fields = "Connection: Upgrade, HTTP2-Settings\r\nUpgrade: h2c\r\nHTTP2-Settings: AAMAAABkAAQAAP__\r\n";
    assert_eq!(fate(get(fields)), (vec![200], KEPT));
    assert_eq!(fate(get("Connection: upgrade\r\nUpgrade: websocket\r\n")), (vec![200], KEPT));
}

#[test]
fn rfc9110_9_1_an_unknown_method_is_501_and_one_that_is_not_allowed_405_with_allow() {
    for method in ["BREW", "get", "GETX", "PRI", "PROPFIND"] {
        let request = format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n");
        assert_eq!(fate(request), (vec![501], CLOSED), "{method}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "TRACE"] {
        let seen = send(format!("{method} / HTTP/1.1\r\nHost: a\r\n\r\n"));
        assert_eq!((seen.statuses(), seen.closed_at), (vec![405], None), "{method}");
        assert!(seen.text.contains("\r\nAllow: GET, HEAD\r\n"), "{}", seen.text);
    }
}

#[test]
fn rfc9110_9_3_2_head_is_answered_as_get_without_the_body() {
    for path in ["/", "/host", "/stream", "/none", "/stale", "/reset", "/nowhere", "/big"] {
        let ask = |method: &str| send(format!("{method} {path} HTTP/1.1\r\nHost: a\r\n\r\n"));
        let (get, head) = (ask("GET"), ask("HEAD"));
        let end = get.text.find("\r\n\r\n").expect("a head") + 4;
        assert_eq!((head.text.as_str(), head.closed_at), (&get.text[..end], None), "{path}");
    }
    let refused = send("HEAD / HTTP/1.1\r\n\r\n");
    assert!(refused.text.starts_with("HTTP/1.1 400 ") && refused.text.ends_with("\r\n\r\n"));
}

#[test]
fn rfc9110_9_3_8_a_trace_has_no_body() {
    assert_eq!(fate("TRACE /trace HTTP/1.1\r\nHost: a\r\n\r\n"), (vec![200], KEPT));
    for body in ["Content-Length: 1\r\n\r\nx", "Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n"] {
        let request = format!("TRACE /trace HTTP/1.1\r\nHost: a\r\n{body}");
        assert_eq!(fate(request), (vec![400], CLOSED));
    }
}

const EXPECTS: &str = "Expect: 100-continue\r\nContent-Length: 3\r\n";

#[test]
fn rfc9110_10_1_1_100_is_sent_when_the_handler_reads_and_the_client_waits() {
    let ask = |head: String| {
        let pause = Act::Sleep(Duration::from_millis(1));
        talk(&[Act::Send(head.as_bytes()), pause, Act::Send(b"abc")])
    };
    assert_eq!(ask(post("/count", EXPECTS, "")).statuses(), [100, 200]);
    assert_eq!(ask(post("/echo", EXPECTS, "")).statuses(), [100, 200]);
    let twice = "Expect: 100-Continue\r\nExpect: 100-continue\r\nContent-Length: 3\r\n";
    assert_eq!(ask(post("/count", twice, "")).statuses(), [100, 200]);
    let chunked = "Expect: 100-continue\r\nTransfer-Encoding: chunked\r\n";
    for path in ["/count", "/echo"] {
        for (head, body) in [(EXPECTS, "abc"), (chunked, "3\r\nabc\r\n0\r\n\r\n")] {
            let fate = fate(post(path, head, body));
            assert_eq!(fate, (vec![200], KEPT), "the body is here: {path} {head}");
        }
    }
    let none = "Expect: 100-continue\r\nContent-Length: 0\r\n";
    assert_eq!(fate(post("/count", none, "")), (vec![200], KEPT), "there is no body");
}

#[test]
fn rfc9110_10_1_1_without_a_reader_the_final_answer_comes_at_once_and_the_connection_closes() {
    for (path, status) in [("/ignore", 200), ("/nowhere", 404), ("/forbidden", 403), ("/", 405)] {
        let seen = send(post(path, EXPECTS, ""));
        let (statuses, closed) = (seen.statuses(), seen.closed_at.is_some());
        assert_eq!((statuses, closed), (vec![status], CLOSED), "{path}");
        assert!(seen.text.contains("\r\nConnection: close\r\n"), "{}", seen.text);
    }
    // Whether it waits is not known.
    let unasked = post("/forbidden", EXPECTS, "abc") + &get("");
    let last = send(unasked);
    assert_eq!((last.statuses(), last.closed_at.is_some()), (vec![403], CLOSED));
    let long = "Expect: 100-continue\r\nContent-Length: 9000000\r\n";
    assert_eq!(fate(post("/count", long, "")), (vec![413], CLOSED), "before any 100");
}

#[test]
fn rfc9110_10_1_1_no_100_goes_to_1_0_and_another_expectation_is_417() {
    let old = "POST /count HTTP/1.0\r\nExpect: 100-continue\r\nContent-Length: 3\r\n\r\n";
    let pause = Act::Sleep(Duration::from_millis(1));
    let seen = talk(&[Act::Send(old.as_bytes()), pause, Act::Send(b"abc")]);
    assert_eq!(seen.statuses(), [200]);
    for other in ["tea", "100-continue, tea", "100-continue=1", "200-ok"] {
        assert_eq!(fate(get(&format!("Expect: {other}\r\n"))), (vec![417], CLOSED), "{other}");
    }
}

#[test]
fn rfc9110_15_3_5_15_3_6_15_4_5_what_has_no_body_gets_none() {
    for (path, status, length) in
        [("/none", 204, false), ("/reset", 205, true), ("/stale", 304, false)]
    {
        let seen = send(format!("GET {path} HTTP/1.1\r\nHost: a\r\n\r\n{}", get("")));
        assert_eq!((seen.statuses(), seen.closed_at), (vec![status, 200], None), "{path}");
        let first = seen.text.split("HTTP/1.1 200").next().unwrap();
        assert!(first.ends_with("\r\n\r\n"), "{first}");
        assert_eq!(first.contains("Content-Length: 0\r\n"), length, "{first}");
        assert!(!first.contains("Transfer-Encoding"), "{first}");
    }
}

#[test]
fn rfc9110_15_5_9_a_408_closes() {
    let head = Act::Send(b"GET / HTTP/1.1\r\n");
    let seen = talk(&[head, Act::Sleep(Duration::from_secs(11))]);
    assert_eq!((seen.statuses(), seen.closed_at.is_some()), (vec![408], CLOSED));
    assert!(seen.text.contains("\r\nConnection: close\r\n"), "{}", seen.text);
}
