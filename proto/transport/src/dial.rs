//! Outgoing connections.

use std::sync::Arc;
use std::time::Duration;

use cara_env::{Env, Executor, IoStream};
use hyper_util::rt::TokioIo;
use rustls::pki_types::ServerName;
use rustls::{AlertDescription, ClientConfig};
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;
use tonic::transport::{Channel, Endpoint};

use crate::SERVER_NAME;

/// HTTP/2 pings find a dead connection within twice this, also when nothing is being sent.
const KEEPALIVE: Duration = Duration::from_secs(10);

/// Why a server could not be reached.
#[derive(Debug, thiserror::Error)]
pub enum ConnectError {
    /// No TCP connection.
    #[error("can't connect to {address}")]
    Tcp {
        /// `host:port`.
        address: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// TCP works, but the server isn't one of the cluster that we trust, or it doesn't trust us.
    #[error("{address} did not prove to be a server of this cluster")]
    Tls {
        /// `host:port`.
        address: String,
        /// What TLS said.
        source: std::io::Error,
    },
    /// Another server leads; see [`crate::Tls::to_leader`].
    #[error("{address} does not lead")]
    NotLeading {
        /// `host:port`.
        address: String,
    },
    /// Nothing answered in time.
    #[error("{address} did not answer within {limit:?}")]
    Deadline {
        /// `host:port`.
        address: String,
        /// How long we waited.
        limit: Duration,
    },
    /// HTTP/2 could not be set up.
    #[error("{address} speaks no HTTP/2")]
    Http {
        /// `host:port`.
        address: String,
        /// What HTTP said.
        source: tonic::transport::Error,
    },
}

/// A TLS connection for any protocol above it. One deadline covers TCP and TLS: a frozen peer accepts TCP and then says
/// nothing.
///
/// # Errors
/// Tells apart "not reachable", "not trusted" and "silent".
pub async fn connect_stream(
    env: &Env,
    address: &str,
    tls: Arc<ClientConfig>,
    limit: Duration,
) -> Result<TlsStream<IoStream>, ConnectError> {
    let work = async {
        let tcp = env
            .net
            .connect(address)
            .await
            .map_err(|source| ConnectError::Tcp { address: address.to_owned(), source })?;
        let name = ServerName::try_from(SERVER_NAME).expect("a constant DNS name");
        TlsConnector::from(tls).connect(name, tcp).await.map_err(|source| {
            match source.get_ref().and_then(|error| error.downcast_ref()) {
                Some(rustls::Error::AlertReceived(AlertDescription::NoApplicationProtocol)) => {
                    ConnectError::NotLeading { address: address.to_owned() }
                }
                _ => ConnectError::Tls { address: address.to_owned(), source },
            }
        })
    };
    cara_env::timeout(&*env.clock, limit, work)
        .await
        .unwrap_or_else(|_| Err(ConnectError::Deadline { address: address.to_owned(), limit }))
}

/// A gRPC channel over one connection. It connects before it returns, so that a wrong address, an untrusted server and a
/// silent one are told apart; when the connection breaks, calls fail, and the next call connects again.
///
/// # Errors
/// As [`connect_stream`].
pub async fn connect(
    env: &Env,
    address: &str,
    tls: Arc<ClientConfig>,
    limit: Duration,
) -> Result<Channel, ConnectError> {
    let first = connect_stream(env, address, tls.clone(), limit).await?;
    let first = Arc::new(std::sync::Mutex::new(Some(first)));
    let (env_again, address_again) = (env.clone(), address.to_owned());
    let connector = tower::service_fn(move |_uri: http::Uri| {
        let (env, address, tls) = (env_again.clone(), address_again.clone(), tls.clone());
        let ready = first.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        async move {
            let stream = match ready {
                Some(stream) => stream,
                None => connect_stream(&env, &address, tls, limit).await?,
            };
            Ok::<_, ConnectError>(TokioIo::new(stream))
        }
    });
    // The scheme says "http" because TLS is already below; tonic must not add its own.
    let endpoint = Endpoint::from_shared(format!("http://{SERVER_NAME}"))
        .expect("a constant URI")
        .executor(Executor)
        .http2_keep_alive_interval(KEEPALIVE)
        .keep_alive_timeout(KEEPALIVE)
        .keep_alive_while_idle(true);
    let work = endpoint.connect_with_connector(connector);
    match cara_env::timeout(&*env.clock, limit, work).await {
        Ok(Ok(channel)) => Ok(channel),
        Ok(Err(source)) => Err(ConnectError::Http { address: address.to_owned(), source }),
        Err(_) => Err(ConnectError::Deadline { address: address.to_owned(), limit }),
    }
}
