//! A server and its clients in one process, over pipes in memory, under a clock that stands until everybody waits.

use std::sync::{Arc, Mutex};
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::routing::get;
use cara_env::{Env, IoStream, Listener};
use cara_transport::{Identity, Limits, Refusal, SERVER_NAME, Tls, fingerprint, pinned};
use hyper::client::conn::{http1, http2};
use hyper_util::rt::TokioIo;
use rcgen::{BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, SanType};
use rustls::ClientConfig;
use rustls::pki_types::ServerName;
use tokio::io::DuplexStream;
use tokio::sync::{mpsc, watch};
use tokio_rustls::client::TlsStream;

struct Pipes(tokio::sync::Mutex<mpsc::UnboundedReceiver<(IoStream, String)>>);

#[async_trait::async_trait]
impl Listener for Pipes {
    async fn accept(&self) -> std::io::Result<(IoStream, String)> {
        match self.0.lock().await.recv().await {
            Some(pipe) => Ok(pipe),
            None => std::future::pending().await,
        }
    }

    fn local_address(&self) -> String {
        "10.0.0.1:7443".into()
    }
}

/// A running server, and how to reach it.
pub struct World {
    pub env: Env,
    dial: mpsc::UnboundedSender<(IoStream, String)>,
    ca_fingerprint: String,
    /// Of a node, by the server's CA.
    node: Tls,
    refused: Arc<Mutex<Vec<Refusal>>>,
    _stop: watch::Sender<bool>,
}

impl World {
    pub fn with(limits: Limits) -> Self {
        let env = Env::real();
        let key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::new(Vec::new()).unwrap();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = params.self_signed(&key).unwrap();
        let issuer = Issuer::new(params, key);
        let identity = |uri: &str| {
            let key = KeyPair::generate().unwrap();
            let mut params = CertificateParams::new(vec![SERVER_NAME.to_owned()]).unwrap();
            params.subject_alt_names.push(SanType::URI(uri.try_into().unwrap()));
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
            let leaf = params.signed_by(&key, &issuer).unwrap();
            let identity = Identity { certificate_pem: leaf.pem(), key_pem: key.serialize_pem(), ca_pem: ca.pem() };
            Tls::new(&env, &identity).unwrap()
        };
        let (dial, pipes) = mpsc::unbounded_channel();
        let refused = Arc::new(Mutex::new(Vec::new()));
        let told = refused.clone();
        let limits = Limits { refused: Arc::new(move |why| told.lock().unwrap().push(why)), ..limits };
        let (stop, stopped) = watch::channel(false);
        let app = Router::new().route("/", get(|| async { "hello" }));
        let (server_env, tls) = (env.clone(), identity("cara://c/server/1"));
        drop(cara_env::spawn(async move {
            let listener = Box::new(Pipes(tokio::sync::Mutex::new(pipes)));
            cara_transport::serve(&server_env, listener, tls, app, limits, stopped).await;
        }));
        let node = identity("cara://c/node/n1");
        Self { env, dial, ca_fingerprint: fingerprint(ca.der()), node, refused, _stop: stop }
    }

    /// Bytes, before any TLS.
    pub fn connect(&self, from: &str) -> DuplexStream {
        let (near, far) = tokio::io::duplex(64 << 10);
        self.dial.send((Box::pin(far), from.to_owned())).unwrap();
        near
    }

    /// TLS by a client without a certificate.
    pub async fn stranger(&self, from: &str, http2: bool) -> std::io::Result<TlsStream<DuplexStream>> {
        let config = pinned(&self.env, &self.ca_fingerprint, http2);
        self.handshake(from, config).await
    }

    /// TLS by a machine of the cluster.
    pub async fn node(&self, from: &str) -> std::io::Result<TlsStream<DuplexStream>> {
        self.handshake(from, self.node.client()).await
    }

    /// TLS by a machine of the cluster that wants the leader only.
    pub async fn node_for_leader(&self, from: &str) -> std::io::Result<TlsStream<DuplexStream>> {
        self.handshake(from, self.node.to_leader()).await
    }

    async fn handshake(&self, from: &str, config: Arc<ClientConfig>) -> std::io::Result<TlsStream<DuplexStream>> {
        let name = ServerName::try_from(SERVER_NAME).unwrap();
        tokio_rustls::TlsConnector::from(config).connect(name, self.connect(from)).await
    }

    /// Why connections ended, in order.
    pub fn refused(&self) -> Vec<Refusal> {
        self.refused.lock().unwrap().clone()
    }

    /// Lets so much time pass for everyone.
    pub async fn pass(&self, time: Duration) {
        self.env.clock.sleep(time).await;
    }
}

/// A request over HTTP/1.1, and its status.
pub async fn ask(stream: TlsStream<DuplexStream>, head: (&str, &str)) -> Result<u16, hyper::Error> {
    let (mut sender, connection) = http1::handshake(TokioIo::new(stream)).await?;
    drop(cara_env::spawn(connection));
    Ok(sender.send_request(request(head)).await?.status().as_u16())
}

/// The same over HTTP/2.
pub async fn ask_h2(stream: TlsStream<DuplexStream>, head: (&str, &str)) -> Result<u16, hyper::Error> {
    let (mut sender, connection) = http2::handshake(cara_env::Executor, TokioIo::new(stream)).await?;
    drop(cara_env::spawn(connection));
    Ok(sender.send_request(request(head)).await?.status().as_u16())
}

fn request((name, value): (&str, &str)) -> hyper::Request<Body> {
    let uri = format!("https://{SERVER_NAME}/");
    hyper::Request::builder().uri(uri).header("host", SERVER_NAME).header(name, value).body(Body::empty()).unwrap()
}
