//! One kept-open connection to one server, HTTP/2, for many calls at a time: what a program that works all day has.
//!
//! `caractrl`'s own client connects anew for each call, as a command line does; measured through it, a load would show
//! the price of TLS handshakes instead of the cluster's.

use std::sync::{Arc, OnceLock};
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use bytes::Bytes;
use cara_env::{Env, Executor};
use caractrl::client::{Access, Address};
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::client::conn::http2::{self, SendRequest};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;

/// A server that does not answer within this is not measured but reported.
const DEADLINE: Duration = Duration::from_secs(10);
/// Before a call is made again: a tenth of an election.
const PAUSE: Duration = Duration::from_millis(100);

/// An open connection. Clones share it.
#[derive(Clone)]
pub struct Connection {
    env: Env,
    address: Arc<str>,
    token: Arc<str>,
    sender: SendRequest<Full<Bytes>>,
    /// Why it has ended, once it has.
    ended: Arc<OnceLock<String>>,
}

impl Connection {
    /// Connects to one of the servers.
    pub async fn open(env: &Env, access: &Access, server: &str) -> anyhow::Result<Self> {
        let Address { authority: address, plain } = server.parse().map_err(anyhow::Error::msg)?;
        ensure!(!plain, "{address} is measured over TLS only: write https://{address}");
        let tls = cara_transport::pinned(env, &access.ca_fingerprint, true);
        let stream = cara_transport::connect_stream(env, &address, tls, DEADLINE).await?;
        let handshake = http2::handshake(Executor, TokioIo::new(stream));
        let (sender, driver) = handshake.await.context("HTTP could not be set up")?;
        let ended = Arc::new(OnceLock::new());
        let note = ended.clone();
        drop(cara_env::spawn(async move {
            let why = match driver.await {
                Ok(()) => "the server closed the connection".to_owned(),
                Err(error) => format!("{:#}", anyhow::Error::from(error)),
            };
            drop(note.set(why)); // It ends once.
        }));
        let (address, token) = (address.into(), access.token.as_str().into());
        Ok(Self { env: env.clone(), address, token, sender, ended })
    }

    /// One change, made again under the same idempotency key while the server asks for that (503, as during an election).
    /// Returns the answer and how often it was made again. A status outside of 2xx and `also` is an error that says what the
    /// server said.
    pub async fn change(
        &self,
        method: Method,
        path: &str,
        body: Bytes,
        also: Option<StatusCode>,
    ) -> anyhow::Result<(Bytes, u32)> {
        let key = cara_env::hex(&*self.env.rng, 16);
        let began = self.env.clock.monotonic();
        let mut again = 0;
        loop {
            let (status, answer) = self.once(method.clone(), path, Some(&key), body.clone(), DEADLINE).await?;
            if status.is_success() || Some(status) == also {
                return Ok((answer, again));
            }
            let late = self.env.clock.monotonic().saturating_sub(began) >= DEADLINE;
            let asks_again = [StatusCode::SERVICE_UNAVAILABLE, StatusCode::TOO_MANY_REQUESTS].contains(&status);
            if late || !asks_again {
                bail!("{} answered {status} to {path}: {}", self.address, String::from_utf8_lossy(&answer));
            }
            self.env.clock.sleep(PAUSE).await;
            again += 1;
        }
    }

    /// Reads, linearizably.
    pub async fn read(&self, path: &str) -> anyhow::Result<Bytes> {
        let (status, answer) = self.once(Method::GET, path, None, Bytes::new(), DEADLINE).await?;
        if !status.is_success() {
            bail!("{} answered {status} to {path}: {}", self.address, String::from_utf8_lossy(&answer));
        }
        Ok(answer)
    }

    /// Begins an answer that goes on, such as a watch.
    pub async fn open_stream(&self, path: &str) -> anyhow::Result<Incoming> {
        let response = cara_env::timeout(&*self.env.clock, DEADLINE, self.send(Method::GET, path, None, Bytes::new()));
        let response =
            response.await.with_context(|| format!("{} did not answer within {DEADLINE:?}", self.address))??;
        if !response.status().is_success() {
            bail!("{} answered {} to {path}", self.address, response.status());
        }
        Ok(response.into_body())
    }

    /// One call, made once.
    pub async fn once(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Bytes,
        limit: Duration,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let work = async {
            let response = self.send(method, path, key, body).await?;
            let status = response.status();
            anyhow::Ok((status, response.into_body().collect().await?.to_bytes()))
        };
        cara_env::timeout(&*self.env.clock, limit, work)
            .await
            .with_context(|| format!("{} did not answer within {limit:?}", self.address))?
    }

    async fn send(
        &self,
        method: Method,
        path: &str,
        key: Option<&str>,
        body: Bytes,
    ) -> anyhow::Result<Response<Incoming>> {
        let mut request = Request::builder()
            .method(method)
            .uri(format!("https://{}/api/v1{path}", self.address))
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json");
        if let Some(key) = key {
            request = request.header("idempotency-key", key);
        }
        let mut sender = self.sender.clone();
        let request = request.body(Full::new(body))?;
        let sending = async {
            sender.ready().await?;
            sender.send_request(request).await
        };
        sending.await.map_err(|error| {
            let ended = self.ended.get().map_or_else(String::new, |why| format!("; the connection has ended: {why}"));
            anyhow::anyhow!("{:#}{ended}", anyhow::Error::from(error))
        })
    }
}
