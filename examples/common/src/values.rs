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

/// Parses a number of bytes from 64 KiB to 1 GiB, which may have the unit `k`, `m` or `g`.
pub fn size(text: &str) -> Result<usize, String> {
    let unit = |last, bytes| Some((text.strip_suffix(last)?, bytes));
    let known = unit('k', 1 << 10).or(unit('m', 1 << 20)).or(unit('g', 1 << 30));
    let (number, unit) = known.unwrap_or((text, 1));
    let found = number.parse::<usize>().ok().and_then(|number| number.checked_mul(unit));
    let found = found.filter(|bytes| (1 << 16..=1 << 30).contains(bytes));
    found.ok_or("expected a number of bytes from 64k to 1g, such as 16m".to_owned())
}

/// Parses a duration of at least 1 ms.
pub fn millis(text: &str) -> Result<Duration, String> {
    let found = duration(text).filter(|span| !span.is_zero());
    found.ok_or("expected a number of milliseconds from 1, or a time such as 5s".to_owned())
}

/// Parses a duration: a number of milliseconds, or a number with the unit `ms` or `s`, as the log
/// and the messages print it. `None` if it is not a whole number of milliseconds.
fn duration(text: &str) -> Option<Duration> {
    if let Ok(millis) = text.parse() {
        return Some(Duration::from_millis(millis));
    }
    let (number, unit) = match text.strip_suffix("ms") {
        Some(number) => (number, 1e-3),
        None => (text.strip_suffix('s')?, 1.0),
    };
    // `parse` alone would also accept a sign, an exponent and words.
    let is_number = number.bytes().all(|byte| byte.is_ascii_digit() || byte == b'.');
    let seconds = number.parse::<f64>().ok().filter(|_| is_number)? * unit;
    let found = Duration::try_from_secs_f64(seconds).ok()?;
    (found.subsec_nanos() % 1_000_000 == 0).then_some(found)
}

/// Looks up the first address of `HOST:PORT`. The host is an IP address or a name.
pub fn address(text: &str) -> Result<SocketAddr, String> {
    if let Ok(known) = text.parse() {
        return Ok(known);
    }
    let wrong = || "expected an address such as 127.0.0.1:8080".to_owned();
    let (host, port) = text.rsplit_once(':').ok_or_else(wrong)?;
    let port: u16 = port.parse().map_err(|_| wrong())?;
    if host.is_empty() {
        return Err(wrong());
    }
    // The brackets of an IPv6 address are not part of the host.
    let inside = host.strip_prefix('[').and_then(|host| host.strip_suffix(']'));
    let host = inside.filter(|host| host.contains(':')).unwrap_or(host);
    let not_found = |error| format!("cannot find the host {host}: {error}");
    let found = (host, port).to_socket_addrs().map_err(not_found)?.next();
    found.ok_or_else(|| format!("the host {host} has no address"))
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

/// A deadline on a command line: a duration, or `off` for a deadline that never passes.
#[derive(Clone, Copy, Debug)]
pub struct Span(pub Duration);

impl Span {
    /// Returns a parser of a duration of at least `least` milliseconds, or `off`.
    pub fn from(least: u64) -> impl Fn(&str) -> Result<Span, String> + Clone + Send + Sync {
        move |text| {
            if text == "off" {
                return Ok(Span(Duration::MAX));
            }
            let found = duration(text).filter(|span| *span >= Duration::from_millis(least));
            let wrong = || {
                format!("expected a number of milliseconds from {least}, a time such as 5s, or off")
            };
            found.map(Span).ok_or_else(wrong)
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
