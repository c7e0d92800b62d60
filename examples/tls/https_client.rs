//! Fetches a page by HTTPS: `https_client localhost:8443 / localhost.pem`. The file has the
//! certificates to trust.

use std::error::Error;
use std::io::Write;
use std::sync::Arc;
use std::time::Duration;
use std::{env, io};

use futures_rustls::TlsConnector;
use futures_rustls::pki_types::pem::PemObject;
use futures_rustls::pki_types::{CertificateDer, ServerName};
use futures_rustls::rustls::{ClientConfig, RootCertStore};
use net::interop::{Compat, FromFutures};
use net::web::{Call, Client};
use net::{Stream, TcpStream};
use traps::timeout_after;

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
    let name = ServerName::try_from(name.to_owned())?;
    let call = Call::new("GET", host, target)?;
    let fetched = async {
        let tcp = TcpStream::connect(host).await?;
        let mut tls = FromFutures::new(connector.connect(name, Compat::new(tcp)).await?);
        let page = Client::new(&mut tls).send(&call).await?.body_to_vec(MOST).await?;
        // Says that this is the end, and no cut.
        tls.shutdown()?;
        tls.flush().await?;
        io::Result::Ok(page)
    };
    Ok(timeout_after(Duration::from_secs(10), fetched).await?)
}

fn main() -> Result<(), Box<dyn Error>> {
    let args: Vec<String> = env::args().skip(1).collect();
    let [host, target, trusted] = &args[..] else {
        return Err("usage: https_client HOST:PORT TARGET CERTIFICATES".into());
    };
    let page = kernel::run(fetch(host, target, trusted))??;
    Ok(io::stdout().write_all(&page)?)
}
