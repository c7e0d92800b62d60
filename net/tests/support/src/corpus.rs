//! Requests of every kind, good and bad, for tests that do something to all of them.

/// Inputs of a connection: single requests, and several in a row.
pub fn corpus() -> Vec<Vec<u8>> {
    let mut all: Vec<Vec<u8>> = Vec::new();
    let mut add = |request: &str| all.push(request.as_bytes().to_vec());
    LINES.iter().for_each(|line| add(&format!("{line}\r\nHost: a\r\n\r\n")));
    FIELDS.iter().for_each(|fields| add(&format!("GET /path HTTP/1.1\r\n{fields}\r\n")));
    for (fields, body) in BODIES {
        let after = "GET / HTTP/1.1\r\nHost: b\r\n\r\n";
        for path in ["/count", "/ignore"] {
            add(&format!("POST {path} HTTP/1.1\r\nHost: a\r\n{fields}\r\n{body}{after}"));
        }
    }
    for chunks in CHUNKS {
        let head = "HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n";
        add(&format!("POST /trailers {head}{chunks}GET / HTTP/1.1\r\nHost: b\r\n\r\n"));
        add(&format!("POST /ignore {head}{chunks}GET / HTTP/1.1\r\nHost: b\r\n\r\n"));
    }
    OTHERS.iter().for_each(|request| add(request));
    all.push(b"GET / HTTP/1.1\r\nHost: a\r\nX: \xff\xfe\r\n\r\n".to_vec());
    all.push(b"GET /\xff HTTP/1.1\r\nHost: a\r\n\r\n".to_vec());
    all
}

/// Request lines.
const LINES: &[&str] = &[
    "GET / HTTP/1.1",
    "GET /path?q=%20&r HTTP/1.1",
    "HEAD /stream HTTP/1.1",
    "GET /stream HTTP/1.1",
    "GET /stream?length=11 HTTP/1.1",
    "GET /stream?length=9 HTTP/1.1",
    "GET /none HTTP/1.1",
    "GET /reset HTTP/1.1",
    "GET /stale HTTP/1.1",
    "GET /fail HTTP/1.1",
    "GET /bye HTTP/1.1",
    "GET / HTTP/1.0",
    "GET /stream HTTP/1.0",
    "GET / HTTP/1.2",
    "GET / HTTP/2.0",
    "GET / HTTP/1.10",
    "GET / HTTP/1.",
    "GET / http/1.1",
    "GET / HTTQ/1.1",
    "GET /",
    "GET  / HTTP/1.1",
    "GET /  HTTP/1.1",
    "GET / HTTP/1.1 ",
    "GET\t/ HTTP/1.1",
    " GET / HTTP/1.1",
    "GET http://b/host HTTP/1.1",
    "GET http://b HTTP/1.1",
    "GET http:// HTTP/1.1",
    "GET http://:80/ HTTP/1.1",
    "GET http://b:000080/ HTTP/1.1",
    "GET http://b:65536/ HTTP/1.1",
    "GET http://u@b/ HTTP/1.1",
    "GET * HTTP/1.1",
    "OPTIONS * HTTP/1.1",
    "OPTIONS http://b HTTP/1.1",
    "CONNECT b:80 HTTP/1.1",
    "GET b:80 HTTP/1.1",
    "GET /#f HTTP/1.1",
    "GET /\0 HTTP/1.1",
    "BREW / HTTP/1.1",
    "get / HTTP/1.1",
    "G(T / HTTP/1.1",
    "PUT / HTTP/1.1",
    "TRACE /trace HTTP/1.1",
    "\r\nGET / HTTP/1.1",
    "\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\n\r\nGET / HTTP/1.1",
    "\nGET / HTTP/1.1",
    "\rGET / HTTP/1.1",
    "GET / HTTP/1.1\nX: y",
    "GET / HTTP/1.1\rX: y",
];

/// Fields of a GET.
const FIELDS: &[&str] = &[
    "",
    "Host:\r\n",
    "Host: a\r\nHost: a\r\n",
    "Host: a b\r\n",
    "Host: a:x\r\n",
    "Host: a:000080\r\n",
    "Host: a:65536\r\n",
    "Host: :80\r\n",
    "Host: [::1]:80\r\n",
    "Host: [::1\r\n",
    "Host : a\r\n",
    " Host: a\r\n",
    "Host: a\r\nX: b\r\n c\r\n",
    "Host: a\r\nX\r\n",
    "Host: a\r\n: b\r\n",
    "Host: a\r\nX:\r\nY: \t \r\n",
    "Host: a\nX: y\r\n",
    "Host: a\r\nX: y\rz\r\n",
    "Host: a\r\nX: y\0\r\n",
    "Host: a\r\nX: \u{7f}\r\n",
    "Host: a\r\nX(: y\r\n",
    "Host: a\r\nConnection: close\r\n",
    "Host: a\r\nConnection: keep-alive, close\r\n",
    "Host: a\r\nConnection: , x\r\n",
    "Host: a\r\nExpect: tea\r\n",
    "Host: a\r\nExpect: 100-continue\r\n",
    "Host: a\r\nUpgrade: h2c\r\nConnection: upgrade\r\n",
    "Host: a\r\nA: b\r\nC: d\r\nE: f\r\nG: h\r\nI: j\r\n",
    "Host: a\r\nA: b\r\nC: d\r\nE: f\r\nG: h\r\nI: j\r\nK : l\r\n",
];

/// Fields of a POST, and its body.
const BODIES: &[(&str, &str)] = &[
    ("", ""),
    ("Content-Length: 0\r\n", ""),
    ("Content-Length: 5\r\n", "hello"),
    ("Content-Length: 005\r\n", "hello"),
    ("Content-Length: 5 \r\n", "hello"),
    ("Content-Length: +5\r\n", "hello"),
    ("Content-Length: -5\r\n", "hello"),
    ("Content-Length: 0x5\r\n", "hello"),
    ("Content-Length: 5, 5\r\n", "hello"),
    ("Content-Length: 5\r\nContent-Length: 5\r\n", "hello"),
    ("Content-Length: 5\r\nContent-Length: 6\r\n", "hello"),
    ("Content-Length:\r\n", ""),
    ("Content-Length: 18446744073709551616\r\n", ""),
    ("Content-Length: 9000000\r\n", ""),
    ("Content-Length : 5\r\n", "hello"),
    ("Content-Length: 5\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding: chunked\r\nContent-Length: 5\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding: Chunked\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding: gzip, chunked\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding: chunked, gzip\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding: chunked, chunked\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding: gzip\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding: identity\r\n", ""),
    ("Transfer-Encoding: xchunked\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding:\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding:\r\n chunked\r\n", "0\r\n\r\n"),
    ("Transfer-Encoding : chunked\r\n", "0\r\n\r\n"),
];

/// Bodies in chunks.
const CHUNKS: &[&str] = &[
    "0\r\n\r\n",
    "5\r\nhello\r\n0\r\n\r\n",
    "1\r\nh\r\n00A\r\n0123456789\r\n000\r\n\r\n",
    "5;a=b\r\nhello\r\n0;c\r\n\r\n",
    "5 ; a=\"b\\\"\"\r\nhello\r\n0\r\n\r\n",
    "5;\r\nhello\r\n0\r\n\r\n",
    "5 \r\nhello\r\n0\r\n\r\n",
    "5\nhello\r\n0\r\n\r\n",
    "5\r\nhello\n0\r\n\r\n",
    "5\r\nhello!\r\n0\r\n\r\n",
    "5\r\nhell\r\n0\r\n\r\n",
    "0x5\r\nhello\r\n0\r\n\r\n",
    "g\r\n",
    "\r\n",
    "fffffffffffffffff\r\n",
    "00000000000000005\r\nhello\r\n0\r\n\r\n",
    "900000\r\nhello",
    "0\r\nX: y\r\n\r\n",
    "0\r\nX: y\r\nY:\r\nX: z\r\n\r\n",
    "0\r\nX : y\r\n\r\n",
    "0\r\n X: y\r\n\r\n",
    "0\r\nX: y\n\r\n",
    "0\r\nContent-Length: 3\r\n\r\n",
    "5\r\nhello\r\n0\r\n\n",
];

/// Whole ones.
const OTHERS: &[&str] = &[
    "",
    "\r\n",
    "G",
    "GET / HTTP/1.1\r\nHost: a",
    "\x16\x03\x01\x02\x00\x01\x00\x01\r\n\r\n",
    "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "GET / HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.0\r\nConnection: keep-alive\r\n\r\nGET / HTTP/1.0\r\n\r\n",
    "GET / HTTP/1.0\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    "HEAD / HTTP/1.1\r\n\r\n",
    "TRACE /trace HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\n\r\nx",
    "GET /host HTTP/1.1\r\nHost: a\r\n\r\nGET /none HTTP/1.1\r\nHost: a\r\n\r\nHEAD / HTTP/1.1\r\nHost: a\r\n\r\nGET /bye HTTP/1.1\r\nHost: a\r\n\r\nGET / HTTP/1.1\r\nHost: a\r\n\r\n",
    "POST /echo HTTP/1.1\r\nHost: a\r\nContent-Type: x/y\r\nContent-Length: 5\r\n\r\nhelloGET / HTTP/1.0\r\n\r\n",
    "POST /count HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    "POST /ignore HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    "POST /forbidden HTTP/1.1\r\nHost: a\r\nExpect: 100-continue\r\nContent-Length: 5\r\n\r\nhello",
    "POST /small HTTP/1.1\r\nHost: a\r\nContent-Length: 11\r\n\r\nhello world",
    "POST /nowhere HTTP/1.1\r\nHost: a\r\nContent-Length: 70000\r\n\r\nhello",
    "GET / HTTP/1.1\r\nHost: a\r\nX: yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n\r\n",
    "GET /yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy HTTP/1.1\r\nHost: a\r\n\r\n",
    "YYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYYY / HTTP/1.1\r\nHost: a\r\n\r\n",
    "GET /\0yyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy HTTP/1.1\r\n",
    "GET / HTTQyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyyy\r\n",
];
