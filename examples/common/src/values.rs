//! Parsers of option values. The error of each parser names the expected value.

use std::fmt::{self, Display};
use std::net::{SocketAddr, ToSocketAddrs};
use std::str::FromStr;
use std::time::Duration;

/// Returns a parser of numbers from `least` to `most`.
pub fn between<N>(least: N, most: N) -> impl Fn(&str) -> Result<N, String> + Clone + Send + Sync
where
    N: FromStr + PartialOrd + Display + Copy + Send + Sync + 'static,
{
    move |text| {
        let found = text.parse().ok().filter(|count| (least..=most).contains(count));
        found.ok_or_else(|| format!("expected a number from {least} to {most}"))
    }
}

/// Parses a duration in milliseconds, of at least 1 ms.
pub fn millis(text: &str) -> Result<Duration, String> {
    let found = text.parse().ok().filter(|millis| *millis > 0).map(Duration::from_millis);
    found.ok_or("expected a number of milliseconds from 1".to_owned())
}

/// Finds the first address of `HOST:PORT`. The host is an IP address or a name.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    let found = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    found.ok_or("expected an address such as 127.0.0.1:8080".to_owned())
}

/// Accepts `HOST:PORT`, and does not look the host up yet.
pub fn host_and_port(text: &str) -> Result<String, String> {
    let port = text.rsplit_once(':').map(|(_, port)| port.parse::<u16>().is_ok());
    let found = port.filter(|is_one| *is_one).map(|_| text.to_owned());
    found.ok_or("expected a host and a port such as localhost:8080".to_owned())
}

/// Parses `on` or `off`.
pub fn switch(text: &str) -> Result<bool, String> {
    match text {
        "on" => Ok(true),
        "off" => Ok(false),
        _ => Err("expected on or off".to_owned()),
    }
}

/// A deadline on a command line: milliseconds, or `off` for a deadline that never passes.
#[derive(Clone, Copy, Debug)]
pub struct Span(pub Duration);

impl Span {
    /// Returns a parser of a span of at least `least` milliseconds, or `off`.
    pub fn from(least: u64) -> impl Fn(&str) -> Result<Span, String> + Clone + Send + Sync {
        move |text| {
            if text == "off" {
                return Ok(Span(Duration::MAX));
            }
            let found = text.parse().ok().filter(|millis| *millis >= least);
            let found = found.map(|millis| Span(Duration::from_millis(millis)));
            found.ok_or_else(|| format!("expected a number of milliseconds from {least}, or off"))
        }
    }
}

impl Display for Span {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Duration::MAX => f.write_str("off"),
            span => write!(f, "{}", span.as_millis()),
        }
    }
}
