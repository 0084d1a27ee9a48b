//! A client of the operator's API inside the simulated world: TLS and HTTP/1.1 over the network seam.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use bytes::Bytes;
use cara_env::{Clock, Env};
use http::{Method, Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustls::ClientConfig;
use serde_json::Value;

/// One attempt to connect, TCP and TLS together.
const CONNECT: Duration = Duration::from_secs(3);

/// One client with its token and its open connections, at most one a server.
pub struct Rest {
    env: Env,
    tls: Arc<ClientConfig>,
    token: String,
    open: Mutex<BTreeMap<String, SendRequest<Full<Bytes>>>>,
}

/// A request.
#[derive(Debug, Clone)]
pub struct Ask {
    /// HTTP method.
    pub method: Method,
    /// Path and query.
    pub path: String,
    /// Sent as Idempotency-Key, so that a retry does nothing twice.
    pub key: Option<String>,
    /// JSON body.
    pub body: Option<Value>,
    /// Sent as Last-Event-ID, as a browser does when a stream broke.
    pub last_event_id: Option<u64>,
}

impl Ask {
    fn new(method: Method, path: String, body: Option<Value>) -> Self {
        Self { method, path, key: None, body, last_event_id: None }
    }

    /// A read.
    pub fn get(path: impl Into<String>) -> Self {
        Self::new(Method::GET, path.into(), None)
    }

    /// Makes something.
    pub fn post(path: impl Into<String>, body: Value) -> Self {
        Self::new(Method::POST, path.into(), Some(body))
    }

    /// Replaces something.
    pub fn put(path: impl Into<String>, body: Value) -> Self {
        Self::new(Method::PUT, path.into(), Some(body))
    }

    /// Removes something.
    pub fn delete(path: impl Into<String>) -> Self {
        Self::new(Method::DELETE, path.into(), None)
    }
}

/// An answer of a server.
#[derive(Debug, Clone)]
pub struct Told {
    /// HTTP status.
    pub status: StatusCode,
    /// The whole body.
    pub body: Bytes,
    /// Which server's state was read, as it says.
    pub answered_by: String,
    /// An earlier attempt was left without a final answer, and may still be carried out after this one was refused.
    pub is_late: bool,
}

impl Told {
    /// The body as JSON; null when it is none.
    pub fn json(&self) -> Value {
        serde_json::from_slice(&self.body).unwrap_or(Value::Null)
    }
}

/// No answer: the request may or may not have been carried out.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoAnswer(pub String);

impl std::fmt::Display for NoAnswer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(&self.0)
    }
}

impl Rest {
    /// Trusts the cluster whose CA has this SHA-256 (hex).
    pub fn new(env: &Env, ca_fingerprint: &str, token: &str) -> Self {
        let tls = cara_transport::pinned(env, ca_fingerprint, false);
        Self { env: env.clone(), tls, token: token.to_owned(), open: Mutex::default() }
    }

    /// Asks one server, at most for `limit`.
    ///
    /// # Errors
    /// When no answer came, for whatever reason.
    pub async fn ask(&self, server: &str, ask: &Ask, limit: Duration) -> Result<Told, NoAnswer> {
        let work = async {
            let kept = self.open.lock().unwrap_or_else(PoisonError::into_inner).remove(server);
            let mut sender = match kept {
                Some(sender) if !sender.is_closed() => sender,
                _ => self.connect(server).await?,
            };
            let told = self.send(&mut sender, server, ask).await?;
            self.open.lock().unwrap_or_else(PoisonError::into_inner).insert(server.to_owned(), sender);
            Ok(told)
        };
        match cara_env::timeout(&*self.env.clock, limit, work).await {
            Ok(told) => told,
            Err(_) => Err(NoAnswer(format!("{server} was silent for {limit:?}"))),
        }
    }

    async fn connect(&self, server: &str) -> Result<SendRequest<Full<Bytes>>, NoAnswer> {
        let stream = cara_transport::connect_stream(&self.env, server, self.tls.clone(), CONNECT)
            .await
            .map_err(|error| NoAnswer(error.to_string()))?;
        let (sender, connection) =
            http1::handshake(TokioIo::new(stream)).await.map_err(|error| NoAnswer(error.to_string()))?;
        drop(cara_env::spawn(async move {
            let _ended = connection.await; // The sender hears of it.
        }));
        Ok(sender)
    }

    /// Opens a stream of lines (server-sent events) on a connection of its own. The inner error is an answer that is no
    /// stream.
    pub async fn stream(&self, server: &str, ask: &Ask, limit: Duration) -> Result<Result<Lines, Told>, NoAnswer> {
        let work = async {
            let mut sender = self.connect(server).await?;
            let answer = self.begin(&mut sender, server, ask).await?;
            if !answer.status().is_success() {
                return Ok(Err(whole(answer).await?));
            }
            let (clock, body) = (self.env.clock.clone(), answer.into_body());
            Ok(Ok(Lines { clock, body, buffer: Vec::new(), _sender: sender }))
        };
        match cara_env::timeout(&*self.env.clock, limit, work).await {
            Ok(opened) => opened,
            Err(_) => Err(NoAnswer(format!("{server} was silent for {limit:?}"))),
        }
    }

    async fn send(&self, sender: &mut SendRequest<Full<Bytes>>, server: &str, ask: &Ask) -> Result<Told, NoAnswer> {
        whole(self.begin(sender, server, ask).await?).await
    }

    async fn begin(
        &self,
        sender: &mut SendRequest<Full<Bytes>>,
        server: &str,
        ask: &Ask,
    ) -> Result<Response<Incoming>, NoAnswer> {
        let no = |error: &dyn std::fmt::Display| NoAnswer(format!("{server}: {error}"));
        let mut request = Request::builder()
            .method(ask.method.clone())
            .uri(&ask.path)
            .header("host", server)
            .header("authorization", format!("Bearer {}", self.token));
        if let Some(key) = &ask.key {
            request = request.header("idempotency-key", key);
        }
        if let Some(id) = ask.last_event_id {
            request = request.header("last-event-id", id);
        }
        let body = ask.body.as_ref().map_or_else(Bytes::new, |body| body.to_string().into());
        let request = request.body(Full::new(body)).map_err(|error| no(&error))?;
        sender.ready().await.map_err(|error| no(&error))?;
        sender.send_request(request).await.map_err(|error| no(&error))
    }
}

async fn whole(answer: Response<Incoming>) -> Result<Told, NoAnswer> {
    let status = answer.status();
    let header = |name: &str| answer.headers().get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let answered_by = header("cara-answered-by").to_owned();
    let body = answer.into_body().collect().await.map_err(|error| NoAnswer(error.to_string()))?.to_bytes();
    Ok(Told { status, body, answered_by, is_late: false })
}

/// The lines of a body that arrive one after the other.
pub struct Lines {
    clock: Arc<dyn Clock>,
    body: Incoming,
    buffer: Vec<u8>,
    /// Dropping it would end the connection.
    _sender: SendRequest<Full<Bytes>>,
}

impl Lines {
    /// The next line; none at the end, after an error, or after so much silence.
    pub async fn next(&mut self, silence: Duration) -> Option<String> {
        loop {
            if let Some(end) = self.buffer.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.buffer.drain(..=end).collect();
                return Some(String::from_utf8_lossy(&line[..end]).into_owned());
            }
            let frame = cara_env::timeout(&*self.clock, silence, self.body.frame()).await.ok()??.ok()?;
            if let Some(bytes) = frame.data_ref() {
                self.buffer.extend_from_slice(bytes);
            }
        }
    }
}
