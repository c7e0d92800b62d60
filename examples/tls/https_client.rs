//! Fetches a page by HTTPS: `https_client localhost:8080 / own.pem`. The file has the certificates
//! to trust.

use std::error::Error;
use std::io::{self, Write};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::Duration;

use common::Common;

use futures_rustls::TlsConnector;
use futures_rustls::pki_types::pem::PemObject;
use futures_rustls::pki_types::{CertificateDer, ServerName};
use futures_rustls::rustls::{ClientConfig, RootCertStore};
use kernel::Real;
use net::interop::{Compat, FromFutures};
use net::web::{Client, ClientRequest};
use net::{Stream, TcpStream};
use traps::timeout_after;

/// The options of the command line.
#[derive(clap::Args)]
struct Job {
    /// Where the server listens
    #[arg(value_name = "HOST:PORT", default_value = "localhost:8080")]
    host: String,
    /// What to ask for
    #[arg(value_name = "TARGET", default_value = "/")]
    target: String,
    /// The file with the certificates to trust
    #[arg(value_name = "CERTIFICATES", default_value = "own.pem")]
    trusted: String,
    #[command(flatten)]
    common: Common,
}

/// The size of the largest page that is fetched.
const MOST: usize = 1 << 20;

async fn fetch(host: &str, target: &str, trusted: &str) -> Result<Vec<u8>, Box<dyn Error>> {
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_file_iter(trusted)? {
        roots.add(certificate?)?;
    }
    let config = ClientConfig::builder().with_root_certificates(roots).with_no_client_auth();
    let connector = TlsConnector::from(Arc::new(config));
    let (name, _) = host.rsplit_once(':').ok_or("the host has no port")?;
    // The brackets of an IPv6 address are not part of it.
    let name = ServerName::try_from(name.trim_matches(['[', ']']).to_owned())?;
    let request = ClientRequest::new("GET", host, target)?;
    let fetched = async {
        let tcp = TcpStream::connect(host).await?;
        let mut tls = FromFutures::new(connector.connect(name, Compat::new(tcp)).await?);
        let page = Client::new(&mut tls).send(&request).await?.body_to_vec(MOST).await?;
        // Says that this is the end, and no cut.
        tls.shutdown()?;
        tls.flush().await?;
        io::Result::Ok(page)
    };
    Ok(timeout_after(Duration::from_secs(10), fetched).await?)
}

async fn print(host: &str, target: &str, trusted: &str) -> Result<(), Box<dyn Error>> {
    let page = fetch(host, target, trusted).await?;
    // Nothing else runs here, so this can block.
    Ok(io::stdout().write_all(&page)?)
}

fn main() -> ExitCode {
    let job: Job = common::parse("https_client", "Fetches a page by HTTPS");
    job.common.print_lists(&job.common.options(), &[]);
    let kernel = Real::new().and_then(|real| job.common.kernel(real, job.common.options()));
    common::run(kernel, print(&job.host, &job.target, &job.trusted))
}
