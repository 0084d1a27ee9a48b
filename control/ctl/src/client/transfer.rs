//! One request to one server: connect, send, read the answer, all within a deadline.

use std::time::Duration;

use bytes::Bytes;
use cara_env::Env;
use cara_proto::rest::Problem;
use cara_transport::ConnectError;
use http_body_util::{BodyExt, Full, Limited};
use hyper::body::Incoming;
use hyper::client::conn::http1;
use hyper::{HeaderMap, Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use serde::de::DeserializeOwned;

use super::{Access, Address, ClientError, Trouble, is_retryable};

/// Bytes of one answer: a list of 100,000 workloads fits.
const ANSWER_BYTES_MAX: usize = 256 << 20;
/// A server that can't be connected to within this is passed over.
const CONNECT_MAX: Duration = Duration::from_secs(3);
/// A stream without a byte for this long is opened again: a frozen server looks like a quiet one.
const STREAM_IDLE_MAX: Duration = Duration::from_secs(60);

/// A request that can be sent again.
pub(super) struct Call {
    pub method: Method,
    pub path: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Option<Bytes>,
    pub streaming: bool,
}

impl Call {
    pub fn new(method: Method, path: String) -> Self {
        Self { method, path, headers: Vec::new(), body: None, streaming: false }
    }
}

/// A final answer of a server.
pub(super) enum Reply {
    Whole(Answer),
    Open(Streaming),
}

/// A whole answer.
#[derive(Debug, Clone)]
pub struct Answer {
    /// HTTP status.
    pub status: u16,
    /// All headers.
    pub headers: HeaderMap,
    /// The whole body.
    pub body: Bytes,
}

impl Answer {
    /// The body as JSON.
    ///
    /// # Errors
    /// [`ClientError::Malformed`] when it is something else, for example because the server is of another version.
    pub fn json<T: DeserializeOwned>(&self) -> Result<T, ClientError> {
        serde_json::from_slice(&self.body).map_err(|e| ClientError::Malformed(format!("{e} (HTTP {})", self.status)))
    }

    /// A header's text; empty when it is absent.
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|v| v.to_str().ok()).unwrap_or("")
    }

    pub(super) fn or_problem(self) -> Result<Self, ClientError> {
        if (200..300).contains(&self.status) { Ok(self) } else { Err(ClientError::Problem(Box::new(self.problem()))) }
    }

    /// What a refusal says; made up from the status when the body is no problem, as behind a proxy.
    fn problem(&self) -> Problem {
        let parsed: Option<Problem> = serde_json::from_slice(&self.body).ok();
        let reason = StatusCode::from_u16(self.status).ok().and_then(|s| s.canonical_reason()).unwrap_or("refused");
        let mut problem = parsed.unwrap_or_else(|| {
            let text = String::from_utf8_lossy(&self.body[..self.body.len().min(200)]).trim().to_owned();
            let detail = if text.is_empty() { reason.to_owned() } else { text };
            Problem { code: format!("http-{}", self.status), title: reason.to_owned(), detail, ..Problem::default() }
        });
        problem.status = self.status;
        problem
    }
}

/// A long answer that is read as it comes.
pub struct Streaming {
    body: Incoming,
    env: Env,
    /// Name of the server that answers; empty when it does not say.
    pub answered_by: String,
}

impl std::fmt::Debug for Streaming {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Streaming").field("answered_by", &self.answered_by).finish_non_exhaustive()
    }
}

impl Streaming {
    /// The next bytes; `None` at the proper end.
    ///
    /// # Errors
    /// [`ClientError::Interrupted`] when the connection breaks, [`ClientError::Quiet`] when nothing comes for a minute.
    pub async fn next(&mut self) -> Result<Option<Bytes>, ClientError> {
        loop {
            let frame = cara_env::timeout(&*self.env.clock, STREAM_IDLE_MAX, self.body.frame()).await;
            match frame {
                Err(_) => return Err(ClientError::Quiet(STREAM_IDLE_MAX)),
                Ok(None) => return Ok(None),
                Ok(Some(Err(error))) => return Err(ClientError::Interrupted(chain(&error))),
                Ok(Some(Ok(frame))) => {
                    if let Ok(data) = frame.into_data() {
                        return Ok(Some(data));
                    }
                }
            }
        }
    }
}

/// Reaches the servers of one cluster.
pub(super) struct Transport {
    env: Env,
    pub addresses: Vec<Address>,
    token: String,
    pin: String,
}

impl Transport {
    pub fn new(env: &Env, access: &Access) -> Result<Self, ClientError> {
        let addresses: Result<Vec<Address>, String> = access.servers.iter().map(|s| s.parse()).collect();
        let addresses = addresses.map_err(ClientError::Setup)?;
        if addresses.is_empty() {
            return Err(ClientError::Setup("no server is known".to_owned()));
        }
        let pin = access.ca_fingerprint.trim().trim_start_matches("sha256:").replace(':', "").to_ascii_lowercase();
        let is_hex = pin.len() == 64 && pin.bytes().all(|b| b.is_ascii_hexdigit());
        if !is_hex && addresses.iter().any(|a| !a.plain) {
            let what = if pin.is_empty() { "is missing" } else { "must be 64 hex digits" };
            return Err(ClientError::Setup(format!("the fingerprint of the cluster's CA {what}")));
        }
        if !access.token.bytes().all(|b| b.is_ascii_graphic()) {
            return Err(ClientError::Setup("the token contains spaces or unprintable characters".to_owned()));
        }
        Ok(Self { env: env.clone(), addresses, token: access.token.clone(), pin })
    }

    /// One attempt with one server.
    pub async fn attempt(&self, index: usize, call: &Call, limit: Duration) -> Result<Reply, Trouble> {
        let work = async {
            let response = self.exchange(index, call).await?;
            self.read(response, call.streaming).await
        };
        cara_env::timeout(&*self.env.clock, limit, work).await.unwrap_or(Err(Trouble::Silent(limit)))
    }

    async fn exchange(&self, index: usize, call: &Call) -> Result<Response<Incoming>, Trouble> {
        let mut sender = self.connect(&self.addresses[index]).await?;
        let mut request = Request::builder()
            .method(call.method.clone())
            .uri(format!("/api/v1{}", call.path))
            .header("host", &self.addresses[index].authority)
            .header("user-agent", concat!("caractrl/", env!("CARGO_PKG_VERSION")));
        if !self.token.is_empty() {
            request = request.header("authorization", format!("Bearer {}", self.token));
        }
        if call.body.is_some() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in &call.headers {
            request = request.header(*name, value);
        }
        let request = request
            .body(Full::new(call.body.clone().unwrap_or_default()))
            .map_err(|e| Trouble::Unreachable(format!("the request can't be sent: {e}")))?;
        sender.send_request(request).await.map_err(|e| Trouble::Broken(chain(&e)))
    }

    async fn connect(&self, address: &Address) -> Result<http1::SendRequest<Full<Bytes>>, Trouble> {
        if address.plain {
            let connecting = self.env.net.connect(&address.authority);
            let stream = cara_env::timeout(&*self.env.clock, CONNECT_MAX, connecting)
                .await
                .map_err(|_| Trouble::Unreachable(format!("no connection within {CONNECT_MAX:?}")))?
                .map_err(|e| Trouble::Unreachable(e.to_string()))?;
            return handshake(stream).await;
        }
        let tls = cara_transport::pinned(&self.env, &self.pin, false);
        let stream = cara_transport::connect_stream(&self.env, &address.authority, tls, CONNECT_MAX).await;
        handshake(stream.map_err(|e| connect_trouble(&e))?).await
    }

    async fn read(&self, response: Response<Incoming>, streaming: bool) -> Result<Reply, Trouble> {
        let (parts, body) = response.into_parts();
        if streaming && parts.status.is_success() {
            let answered_by = parts.headers.get("cara-answered-by").and_then(|v| v.to_str().ok()).unwrap_or("");
            return Ok(Reply::Open(Streaming { body, env: self.env.clone(), answered_by: answered_by.to_owned() }));
        }
        let body = Limited::new(body, ANSWER_BYTES_MAX).collect().await.map_err(|e| Trouble::Broken(chain(&*e)))?;
        let answer = Answer { status: parts.status.as_u16(), headers: parts.headers, body: body.to_bytes() };
        if is_retryable(parts.status) {
            let problem = answer.problem();
            let parsed = !problem.code.starts_with("http-");
            if problem.retryable || !parsed {
                return Err(Trouble::Busy(Box::new(problem)));
            }
        }
        Ok(Reply::Whole(answer))
    }
}

async fn handshake<S>(stream: S) -> Result<http1::SendRequest<Full<Bytes>>, Trouble>
where
    S: tokio::io::AsyncRead + tokio::io::AsyncWrite + Send + Unpin + 'static,
{
    let (sender, connection) =
        http1::handshake(TokioIo::new(stream)).await.map_err(|e| Trouble::Unreachable(chain(&e)))?;
    drop(cara_env::spawn(connection)); // It ends with the answer; its errors reach us through the sender.
    Ok(sender)
}

fn connect_trouble(error: &ConnectError) -> Trouble {
    match error {
        ConnectError::Tcp { source, .. } => Trouble::Unreachable(source.to_string()),
        ConnectError::Tls { source, .. } if source.kind() == std::io::ErrorKind::InvalidData => {
            Trouble::Untrusted(format!("its certificate is not of this cluster ({source})"))
        }
        ConnectError::NotLeading { .. } => Trouble::Unreachable("another server leads".to_owned()),
        ConnectError::Tls { source, .. } => Trouble::Unreachable(format!("TLS failed: {source}")),
        ConnectError::Deadline { limit, .. } => Trouble::Unreachable(format!("no connection within {limit:?}")),
        ConnectError::Http { source, .. } => Trouble::Unreachable(source.to_string()),
    }
}

/// An error with its causes in one line. A server that is killed closes without TLS's goodbye: that has a plain name.
fn chain(error: &(dyn std::error::Error + 'static)) -> String {
    let mut text = error.to_string();
    let mut cause = error.source();
    while let Some(error) = cause {
        let next = error.to_string();
        if !text.contains(&next) {
            text = format!("{text}: {next}");
        }
        cause = error.source();
    }
    if text.contains("close_notify") { "the server closed it".to_owned() } else { text }
}
