//! A small HTTP client: fetches each URL, if possible on the connection of the previous one.

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use common::Common;
use common::limits::span;
use common::values::millis;
use kernel::{Policy, Real};
use net::TcpStream;
use net::web::{Client, ClientRequest, ClientResponse};
use traps::timeout_after;

/// The options of the command line.
#[derive(clap::Args)]
struct Job {
    /// What to fetch, one after the other
    #[arg(value_name = "URL", required_unless_present_any = ["print_limits", "list_traps"])]
    urls: Vec<Url>,
    /// Print the heads of the answers too
    #[arg(long)]
    include: bool,
    /// Ask for heads alone
    #[arg(long)]
    head: bool,
    /// Send TEXT by POST
    #[arg(long, value_name = "TEXT", conflicts_with = "head")]
    data: Option<String>,
    /// Milliseconds for a connection to be made
    #[arg(long, value_name = "MS", default_value = "5000", value_parser = millis)]
    connect: Duration,
    /// Milliseconds for each piece of an answer, its head included
    #[arg(long, value_name = "MS", default_value = "10000", value_parser = millis)]
    piece: Duration,
    /// Milliseconds for the whole of each URL
    #[arg(long = "timeout", value_name = "MS", default_value = "60000", value_parser = millis)]
    whole: Duration,
    /// When to unregister a descriptor: lazy, next-sleep or eager
    #[arg(long, value_name = "NAME", default_value = "lazy")]
    policy: Policy,
    #[command(flatten)]
    common: Common,
}

/// `http://host[:port][/path][?query]`.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Url {
    /// As the `Host` field has it.
    host: String,
    /// With its port.
    address: String,
    target: String,
}

impl FromStr for Url {
    type Err = String;

    fn from_str(text: &str) -> Result<Url, String> {
        let wrong = || "expected a URL such as http://localhost:8080/".to_owned();
        let (scheme, rest) = text.split_once("://").ok_or_else(wrong)?;
        match &*scheme.to_ascii_lowercase() {
            "http" => {}
            "https" => return Err(format!("there is no TLS here; {}", wrong())),
            _ => return Err(wrong()),
        }
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, target) = rest.split_at(end);
        // An empty port is the scheme's own (RFC 3986, 3.2.3).
        let host = host.strip_suffix(':').unwrap_or(host);
        // A request may have no host, and `http` has one (RFC 9110, 4.2.1).
        if host.is_empty() {
            return Err(wrong());
        }
        // A colon inside brackets belongs to the address.
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let address = if has_port { host.to_owned() } else { format!("{host}:80") };
        let slash = if target.starts_with('/') { "" } else { "/" };
        let target = format!("{slash}{target}");
        match ClientRequest::new("GET", host, &target) {
            Ok(_) => Ok(Url { host: host.to_owned(), address, target }),
            Err(_) => Err(wrong()),
        }
    }
}

/// A connection that can be used for the next URL.
struct Kept {
    address: String,
    client: Client<TcpStream>,
}

impl Job {
    fn request(&self, url: &Url) -> io::Result<ClientRequest> {
        let method = match (self.head, &self.data) {
            (true, _) => "HEAD",
            (false, Some(_)) => "POST",
            (false, None) => "GET",
        };
        let request =
            ClientRequest::new(method, &url.host, &url.target)?.header("User-Agent", "trapline")?;
        Ok(match &self.data {
            Some(data) if !self.head => request.with_body(data.as_bytes()),
            _ => request,
        })
    }

    /// Fetches one URL. Returns the connection if it can be used again.
    async fn fetch(&self, url: &Url, kept: Option<Kept>) -> io::Result<Option<Kept>> {
        let request = self.request(url)?;
        let mut kept = kept.filter(|kept| kept.address == url.address);
        loop {
            let again = kept.is_some();
            let mut client = match kept.take() {
                Some(kept) => kept.client,
                None => {
                    let connect = TcpStream::connect(&url.address);
                    Client::new(timeout_after(self.connect, connect).await?)
                }
            };
            match timeout_after(self.piece, client.send(&request)).await {
                // Nothing was sent.
                Err(error) if again && error.kind() == ErrorKind::NotConnected => continue,
                // The server closed before it saw this request, so nothing was done.
                Err(error) if again && self.data.is_none() && is_gone(&error) => continue,
                Err(error) => return Err(error),
                Ok(response) => self.show(response, again).await?,
            }
            let address = url.address.clone();
            return Ok(client.is_open().then_some(Kept { address, client }));
        }
    }

    /// Prints a response as it arrives.
    async fn show(
        &self,
        mut response: ClientResponse<'_, TcpStream>,
        again: bool,
    ) -> io::Result<()> {
        // Nothing else runs here, so this can block.
        let mut out = io::stdout();
        if self.include || self.head {
            out.write_all(response.head())?;
        }
        let (status, mut bytes) = (response.status(), 0);
        while let Some(piece) = timeout_after(self.piece, response.read_chunk()).await? {
            out.write_all(piece)?;
            bytes += piece.len();
        }
        out.flush()?;
        let whose = if again { "the same" } else { "a new" };
        common::complain(format_args!("{status}, {bytes} bytes, on {whose} connection"));
        Ok(())
    }

    async fn run(&self) -> Result<(), String> {
        let (mut kept, mut failed) = (None, 0);
        for url in &self.urls {
            match timeout_after(self.whole, self.fetch(url, kept.take())).await {
                Ok(open) => kept = open,
                Err(error) => {
                    let Url { host, target, .. } = url;
                    common::complain(format_args!("http://{host}{target}: {error}"));
                    failed += 1;
                }
            }
        }
        if failed == 0 { Ok(()) } else { Err(format!("{failed} of {} failed", self.urls.len())) }
    }
}

/// Whether the server had closed the connection before it got the request.
fn is_gone(error: &io::Error) -> bool {
    let gone = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    gone.contains(&error.kind())
}

fn main() -> ExitCode {
    let job: Job = common::parse("fetch", "An HTTP client that prints what it fetches");
    let options = job.common.options().policy(job.policy);
    let own = [span("connect", job.connect), span("piece", job.piece), span("timeout", job.whole)];
    job.common.print_lists(&options, &own);
    common::run(Real::new().and_then(|real| job.common.kernel(real, options)), job.run())
}
