//! One kept-open connection to one server: what a program that writes all day has.
//!
//! `caractrl`'s own client connects anew for each call, as a command line does; measured through it, a load would show
//! the price of TLS handshakes instead of the cluster's.

use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use cara_env::Env;
use caractrl::client::Access;
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;

/// A server that does not answer within this is not measured but reported.
const DEADLINE: Duration = Duration::from_secs(10);
/// Before a write is sent again: a tenth of an election.
const PAUSE: Duration = Duration::from_millis(100);

/// An open connection.
pub struct Connection {
    env: Env,
    address: String,
    token: String,
    sender: SendRequest<Full<Bytes>>,
}

impl Connection {
    /// Connects to one of the servers.
    pub async fn open(env: &Env, access: &Access, server: &str) -> anyhow::Result<Self> {
        let address = server.trim().trim_start_matches("https://").trim_end_matches('/').to_owned();
        let tls = cara_transport::pinned(env, &access.ca_fingerprint, false);
        let stream = cara_transport::connect_stream(env, &address, tls, DEADLINE).await?;
        let (sender, driver) = http1::handshake(TokioIo::new(stream)).await.context("HTTP could not be set up")?;
        drop(cara_env::spawn(driver)); // It ends with the connection.
        Ok(Self { env: env.clone(), address, token: access.token.clone(), sender })
    }

    /// One write with a JSON body, sent again under the same idempotency key while the server asks for that (503, as
    /// during an election). Returns how often it was sent again. A status outside of 2xx and `also` is an error that
    /// says what the server said.
    pub async fn write(
        &mut self,
        method: Method,
        path: &str,
        body: String,
        also: Option<StatusCode>,
    ) -> anyhow::Result<usize> {
        let key = cara_env::hex(&*self.env.rng, 16);
        let began = self.env.clock.monotonic();
        let mut again = 0;
        loop {
            let (status, answer) = self.exchange(&method, path, &key, body.clone()).await?;
            if status.is_success() || Some(status) == also {
                return Ok(again);
            }
            let late = self.env.clock.monotonic().saturating_sub(began) >= DEADLINE;
            if late || status != StatusCode::SERVICE_UNAVAILABLE {
                bail!("{} answered {status} to {path}: {}", self.address, String::from_utf8_lossy(&answer));
            }
            self.env.clock.sleep(PAUSE).await;
            again += 1;
        }
    }

    async fn exchange(
        &mut self,
        method: &Method,
        path: &str,
        key: &str,
        body: String,
    ) -> anyhow::Result<(StatusCode, Bytes)> {
        let request = Request::builder()
            .method(method.clone())
            .uri(format!("/api/v1{path}"))
            .header("host", &self.address)
            .header("authorization", format!("Bearer {}", self.token))
            .header("content-type", "application/json")
            .header("idempotency-key", key)
            .body(Full::new(Bytes::from(body)))?;
        let work = async {
            self.sender.ready().await?;
            let response = self.sender.send_request(request).await?;
            let status = response.status();
            anyhow::Ok((status, response.into_body().collect().await?.to_bytes()))
        };
        cara_env::timeout(&*self.env.clock, DEADLINE, work)
            .await
            .with_context(|| format!("{} did not answer within {DEADLINE:?}", self.address))?
    }
}
