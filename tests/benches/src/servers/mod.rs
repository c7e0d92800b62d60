//! The servers: one small program on many runtimes, one process each.

use std::io::{self, Write as _};
use std::net::{SocketAddr, TcpListener};

use socket2::{Domain, Protocol, Type};

mod compio;
mod epoll;
mod hyper;
mod mio;
mod monoio;
mod phases;
mod program;
mod reactor;
mod redis;
mod smol;
mod tokio;
mod trapline;

/// The example itself, so that the measured code is the code that users see.
#[allow(dead_code, unreachable_pub)]
#[path = "../../../../examples/servers/http.rs"]
mod http_example;

// Each example has the command line of all examples within.
#[allow(dead_code, unreachable_pub, clippy::duplicate_mod)]
#[path = "../../../../examples/servers/redis.rs"]
mod redis_example;

/// The options of a server.
#[derive(Clone, Copy, Debug)]
pub struct How {
    /// A deadline for each phase: idle, head, write.
    pub deadlines: bool,
    /// Send everything back, instead of HTTP.
    pub echo: bool,
}

/// Something that serves.
#[derive(Clone, Copy)]
pub struct Server {
    pub name: &'static str,
    /// Its name with a deadline for each phase.
    pub limited: &'static str,
    /// Whether it can serve a protocol other than HTTP.
    pub echoes: bool,
    start: Start,
}

#[derive(Clone, Copy)]
enum Start {
    /// On a given listener.
    On(fn(TcpListener, How) -> io::Result<()>),
    /// On a listener that it makes.
    At(fn(SocketAddr, How) -> io::Result<()>),
}

macro_rules! server {
    ($name:literal, $echoes:literal, $start:expr) => {
        Server { name: $name, limited: concat!($name, " +d"), echoes: $echoes, start: $start }
    };
}

/// The floor, with which everything is compared.
pub const FLOOR: &str = "epoll";
/// The bare loop with which CPU is compared.
pub const MIO: &str = "mio";
/// The small program on trapline.
pub const SMALL: &str = "trapline";
/// The `http` example on trapline.
pub const HTTP: &str = "trapline-http";

/// All of them; trapline's first.
pub const SERVERS: &[Server] = &[
    server!("trapline", true, Start::At(trapline::serve)),
    server!("trapline-http", false, Start::At(trapline::serve_http)),
    server!("epoll", true, Start::On(epoll::serve)),
    server!("mio", true, Start::On(mio::serve)),
    server!("tokio", true, Start::On(tokio::serve)),
    server!("tokio-lean", true, Start::On(tokio::serve_lean)),
    server!("hyper", false, Start::On(hyper::serve)),
    server!("smol", true, Start::On(smol::serve)),
    server!("monoio", true, Start::On(monoio::serve)),
    server!("compio", true, Start::On(compio::serve)),
];

/// The `redis` example, and the same program on tokio. They speak no HTTP, so no table has them.
pub const REDIS: [&str; 2] = ["redis", "redis-tokio"];

const OF_REDIS: [Server; 2] = [
    server!("redis", false, Start::At(redis::serve)),
    server!("redis-tokio", false, Start::On(redis::serve_on_tokio)),
];

/// The server of that name.
///
/// # Errors
///
/// Returns an error with the list of servers if there is none with that name.
pub fn named(name: &str) -> Result<&'static Server, String> {
    let servers = || SERVERS.iter().chain(&OF_REDIS);
    let found = servers().find(|server| server.name == name);
    let all = || servers().map(|server| server.name).collect::<Vec<_>>().join(", ");
    found.ok_or_else(|| format!("no server `{name}`; there are {}", all()))
}

/// Serves until it is killed. Prints its address to standard output.
///
/// # Errors
///
/// Returns the error of the listener or the runtime.
pub fn serve(server: &Server, how: How, addr: SocketAddr) -> io::Result<()> {
    crate::sys::raise_descriptors()?;
    match server.start {
        Start::At(serve) => serve(addr, how),
        Start::On(serve) => {
            let listener = listen(addr)?;
            say_listening(listener.local_addr()?);
            serve(listener, how)
        }
    }
}

/// With the options that trapline's own listener sets.
fn listen(addr: SocketAddr) -> io::Result<TcpListener> {
    let kind = Type::STREAM.nonblocking().cloexec();
    let socket = socket2::Socket::new(Domain::for_address(addr), kind, Some(Protocol::TCP))?;
    socket.set_reuse_address(true)?;
    // Accepted connections inherit it.
    socket.set_tcp_nodelay(true)?;
    socket.bind(&addr.into())?;
    socket.listen(4096)?;
    Ok(socket.into())
}

fn say_listening(addr: SocketAddr) {
    // If it was started by hand, the reader may have gone.
    let _ = writeln!(io::stdout(), "listening on {addr}");
}
