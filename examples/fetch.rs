//! A small HTTP client: fetches each URL, on the connection of the one before where it can.

mod common;

use std::io::{self, ErrorKind, Write};
use std::process::ExitCode;
use std::time::Duration;

use common::{About, Flags};
use net::TcpStream;
use net::http::{Call, Client, Reply};
use traps::timeout_after;

/// What the command line asks for.
struct Job {
    urls: Vec<Url>,
    /// With the heads of the answers.
    include: bool,
    /// Heads alone.
    head: bool,
    /// To be sent, by POST.
    data: Option<String>,
    /// For each connection to be made.
    connect: Duration,
    /// For each piece of an answer, its head the first.
    piece: Duration,
    /// For the whole of each URL.
    whole: Duration,
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

impl Url {
    fn parse(text: &str) -> Result<Url, String> {
        let wrong = || format!("expected a URL such as http://localhost:8080/, not `{text}`");
        let rest = text.strip_prefix("http://").ok_or_else(wrong)?;
        let rest = rest.split('#').next().unwrap_or_default();
        let end = rest.find(['/', '?']).unwrap_or(rest.len());
        let (host, target) = rest.split_at(end);
        // An empty port is the scheme's own (RFC 3986, 3.2.3).
        let host = host.strip_suffix(':').unwrap_or(host);
        let name = host.rsplit_once(':').map_or(host, |(name, _)| name);
        if host.is_empty() || host.contains('@') || (name.is_empty() && !host.starts_with('[')) {
            return Err(wrong());
        }
        // A colon inside brackets is the address's own.
        let has_port = host.rsplit_once(':').is_some_and(|(_, port)| !port.contains(']'));
        let address = if has_port { host.to_owned() } else { format!("{host}:80") };
        let slash = if target.starts_with('/') { "" } else { "/" };
        let target = format!("{slash}{target}");
        match Call::new("GET", host, &target) {
            Ok(_) => Ok(Url { host: host.to_owned(), address, target }),
            Err(_) => Err(wrong()),
        }
    }
}

impl Flags for Job {
    fn is_lesson(&self) -> bool {
        false
    }

    fn usage(&self) -> String {
        "  URL ...           what to fetch, one after the other\n\
         \x20 --include         print the heads of the answers too\n\
         \x20 --head            ask for heads alone\n\
         \x20 --data TEXT       send TEXT by POST\n\
         \x20 --connect MS      for each connection to be made (5000)\n\
         \x20 --piece MS        for each piece of an answer (10000)\n\
         \x20 --timeout MS      for the whole of each URL (60000)\n"
            .to_owned()
    }

    fn take(
        &mut self,
        option: &str,
        value: &mut dyn FnMut() -> Result<String, String>,
    ) -> Result<bool, String> {
        let mut millis = || common::millis(option, &value()?);
        match option {
            "--include" => self.include = true,
            "--head" => self.head = true,
            "--connect" => self.connect = millis()?,
            "--piece" => self.piece = millis()?,
            "--timeout" => self.whole = millis()?,
            "--data" => self.data = Some(value()?),
            url if !url.starts_with('-') => self.urls.push(Url::parse(url)?),
            _ => return Ok(false),
        }
        Ok(true)
    }
}

/// A connection that may serve for the next URL.
struct Kept {
    address: String,
    client: Client<TcpStream>,
}

impl Job {
    fn call(&self, url: &Url) -> io::Result<Call> {
        let method = match (self.head, &self.data) {
            (true, _) => "HEAD",
            (false, Some(_)) => "POST",
            (false, None) => "GET",
        };
        let call = Call::new(method, &url.host, &url.target)?.header("User-Agent", "trapline")?;
        Ok(match &self.data {
            Some(data) if !self.head => call.with_body(data.as_bytes()),
            _ => call,
        })
    }

    /// Fetches one URL. Gives the connection if it can be used again.
    async fn fetch(&self, url: &Url, kept: Option<Kept>) -> io::Result<Option<Kept>> {
        let call = self.call(url)?;
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
            match timeout_after(self.piece, client.send(&call)).await {
                // Nothing was sent.
                Err(error) if again && error.kind() == ErrorKind::NotConnected => continue,
                // Closed since its last answer, before it saw this request: nothing was done.
                Err(error) if again && self.data.is_none() && is_gone(&error) => continue,
                Err(error) => return Err(error),
                Ok(reply) => self.show(reply, again).await?,
            }
            let address = url.address.clone();
            return Ok(client.is_open().then_some(Kept { address, client }));
        }
    }

    /// Prints an answer as it comes.
    async fn show(&self, mut reply: Reply<'_, TcpStream>, again: bool) -> io::Result<()> {
        // Nothing else runs here, so it may block.
        let mut out = io::stdout();
        if self.include || self.head {
            out.write_all(reply.head())?;
        }
        let (status, mut bytes) = (reply.status(), 0);
        while let Some(piece) = timeout_after(self.piece, reply.read_chunk()).await? {
            out.write_all(piece)?;
            bytes += piece.len();
        }
        out.flush()?;
        let whose = if again { "the same" } else { "a new" };
        common::complain!("{status}, {bytes} bytes, on {whose} connection");
        Ok(())
    }

    async fn run(&self) -> Result<(), String> {
        let (mut kept, mut failed) = (None, 0);
        for url in &self.urls {
            match timeout_after(self.whole, self.fetch(url, kept.take())).await {
                Ok(open) => kept = open,
                Err(error) => {
                    common::complain!("http://{}{}: {error}", url.host, url.target);
                    failed += 1;
                }
            }
        }
        if failed == 0 { Ok(()) } else { Err(format!("{failed} of {} failed", self.urls.len())) }
    }
}

/// Whether the server had closed the connection when the request came.
fn is_gone(error: &io::Error) -> bool {
    let gone = [ErrorKind::UnexpectedEof, ErrorKind::ConnectionReset, ErrorKind::BrokenPipe];
    gone.contains(&error.kind())
}

fn main() -> ExitCode {
    let mut job = Job {
        urls: Vec::new(),
        include: false,
        head: false,
        data: None,
        connect: Duration::from_secs(5),
        piece: Duration::from_secs(10),
        whole: Duration::from_secs(60),
    };
    let about = About {
        name: "fetch",
        what: "an HTTP client that prints what it fetches",
        server: false,
        policy: true,
    };
    let args = about.parse_with(&mut job);
    if job.urls.is_empty() {
        common::complain!("fetch: expected a URL");
        return ExitCode::from(2);
    }
    common::run(args.real_kernel(), job.run())
}
