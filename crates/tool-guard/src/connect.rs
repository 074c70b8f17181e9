//! Connections to servers: plain, or with TLS.
use anyhow::Context as _;
use bytes::Bytes;
use clap::Args;
use http_body_util::Full;
use hyper::{
    Uri,
    rt::{Read, Write},
};
use hyper_util::{
    client::legacy::{
        self, Client,
        connect::{Connected, Connection},
    },
    rt::{TokioExecutor, TokioIo, TokioTimer},
};
use std::{
    fs,
    future::Future,
    io,
    net::SocketAddr,
    path::PathBuf,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};
use tokio::{net::TcpStream, time::timeout};
use tokio_rustls::{TlsConnector, rustls::ClientConfig};
use tool_reliability::admin::is_local_host;
use tower_service::Service;
use tr_core::causes;

/// Which addresses are trusted.
#[derive(Args, Clone, Debug, Default)]
pub(crate) struct Reach {
    /// Authorities, as PEM, that are trusted besides the system's at `https` addresses of servers and tools
    #[arg(long, value_name = "FILE")]
    pub(crate) ca: Option<PathBuf>,

    /// Allow `http` addresses of servers and tools on other machines: params and headers travel unencrypted
    #[arg(long)]
    pub(crate) insecure_http: bool,
}

/// How long connecting may take, TLS included.
const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);

/// How long a connection may idle. Many servers close idle connections after 5 s; a request that is sent as the
/// server closes may have run.
const IDLE: Duration = Duration::from_secs(4);

/// Which addresses may be called, and whose certificates count.
pub(crate) struct Trust {
    insecure_http: bool,
    /// With the authorities of `--ca`, or else made once at need: it holds all authorities of the system.
    tls: Option<Arc<ClientConfig>>,
}

impl Trust {
    /// # Errors
    /// If the file with authorities cannot be read.
    pub(crate) fn new(reach: &Reach) -> anyhow::Result<Self> {
        let read = |file: &PathBuf| {
            let pem = fs::read(file)?;
            anyhow::ensure!(!pem.is_empty(), "the file is empty: give certificates as PEM");
            Ok(Arc::new(tr_tls::Settings::default().client_config_with(&pem)?))
        };
        let named = |file| read(file).with_context(|| format!("--ca {}", file.display()));
        let tls = reach.ca.as_ref().map(named).transpose()?;
        Ok(Self { insecure_http: reach.insecure_http, tls })
    }

    /// # Errors
    /// If what is sent to the address could be read on its way, or TLS has no trusted authorities.
    pub(crate) fn connector(&mut self, url: &Uri) -> anyhow::Result<Connector> {
        let host = url.host().unwrap_or_default().trim_matches(['[', ']']);
        if url.scheme_str() != Some("https") {
            anyhow::ensure!(
                self.insecure_http || is_local_host(host),
                "`url` {url}: params and headers would travel unencrypted to another machine: use https, or allow it with --insecure-http"
            );
            return Ok(Connector { tls: None });
        }
        let tls = match &self.tls {
            Some(tls) => tls.clone(),
            None => {
                let tls = tr_tls::Settings::default().client_config_with(&[])?;
                self.tls.insert(Arc::new(tls)).clone()
            }
        };
        Ok(Connector { tls: Some(tls) })
    }
}

/// Reads an address; `localhost` is this machine's.
pub(crate) fn address(text: &str) -> Result<SocketAddr, String> {
    let here = text.strip_prefix("localhost:").map(|port| format!("127.0.0.1:{port}"));
    let address = here.as_deref().unwrap_or(text).parse().ok();
    address.ok_or_else(|| "give an IP address and a port, such as 127.0.0.1:9470".into())
}

/// Connects to the host of an address.
#[derive(Clone, Debug)]
pub(crate) struct Connector {
    /// `None` for tools without TLS.
    tls: Option<Arc<ClientConfig>>,
}

impl Connector {
    /// A client with connections of its own. A request that may have been sent is never sent again by the client
    /// itself.
    pub(crate) fn client(self) -> Client<Self, Full<Bytes>> {
        Client::builder(TokioExecutor::new())
            .retry_canceled_requests(false)
            .pool_idle_timeout(IDLE)
            .pool_timer(TokioTimer::new())
            .build(self)
    }
}

/// A connection, plain or with TLS.
pub(crate) trait Stream: Read + Write + Send + Unpin {}

impl<T: Read + Write + Send + Unpin> Stream for T {}

impl Connection for Box<dyn Stream> {
    fn connected(&self) -> Connected {
        Connected::new()
    }
}

impl Service<Uri> for Connector {
    type Response = Box<dyn Stream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<Box<dyn Stream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, uri: Uri) -> Self::Future {
        let tls = self.tls.clone();
        Box::pin(async move {
            timeout(CONNECT_TIMEOUT, connect(uri, tls)).await.map_err(|_| {
                io::Error::new(io::ErrorKind::TimedOut, "connecting took longer than 10 s")
            })?
        })
    }
}

/// Whether nothing of the request was sent: no connection was made, or it closed before the request was taken.
pub(crate) fn was_not_sent(error: &legacy::Error) -> bool {
    let mut causes = causes(error).filter_map(|cause| cause.downcast_ref::<hyper::Error>());
    error.is_connect() || causes.any(hyper::Error::is_canceled)
}

async fn connect(uri: Uri, tls: Option<Arc<ClientConfig>>) -> io::Result<Box<dyn Stream>> {
    let host = uri.host().unwrap_or_default().trim_matches(['[', ']']).to_owned();
    let port = uri.port_u16().unwrap_or(if tls.is_some() { 443 } else { 80 });
    let stream = TcpStream::connect((&*host, port)).await?;
    stream.set_nodelay(true)?;
    let Some(config) = tls else { return Ok(Box::new(TokioIo::new(stream))) };
    let name =
        host.try_into().map_err(|error| io::Error::new(io::ErrorKind::InvalidInput, error))?;
    let stream = TlsConnector::from(config).connect(name, stream).await?;
    Ok(Box::new(TokioIo::new(stream)))
}
