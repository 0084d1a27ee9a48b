//! Handing an API request to the leader, as it came.
//!
//! The leader runs it through the same router with the caller's own credential and answers in parts, so that a log that
//! is being followed streams through.

use std::collections::BTreeMap;
use std::sync::Mutex;
use std::time::Duration;

use axum::body::{Body, Bytes};
use cara_core::command::ApiTokenUse;
use cara_env::Env;
use cara_proto::cluster::cluster_client::ClusterClient;
use cara_proto::cluster::{
    AnnounceRequest, Header, HttpPart, HttpRequest, NoteTokenUseRequest, RecoverTokenRequest, RecoverTokenResponse,
    TokenUse,
};
use cara_transport::Tls;
use futures_util::FutureExt;
use http::{HeaderMap, HeaderName, HeaderValue, Response, StatusCode};
use tokio_stream::StreamExt;
use tonic::transport::Channel;

use crate::error::{ApiError, chain};

/// One attempt to connect to the leader.
const CONNECT: Duration = Duration::from_secs(3);

/// Headers that travel with a forwarded request. Everything else is about the connection it came on.
const CARRIED: [&str; 7] =
    ["authorization", "content-type", "accept", "idempotency-key", "if-match", "x-request-id", "user-agent"];

/// Open connections to other servers.
pub struct Forwarder {
    env: Env,
    tls: Tls,
    /// At most one per server; a cluster has at most 16.
    channels: Mutex<BTreeMap<String, Channel>>,
}

impl Forwarder {
    /// With no connection open.
    pub fn new(env: &Env, tls: &Tls) -> Self {
        Self { env: env.clone(), tls: tls.clone(), channels: Mutex::default() }
    }

    async fn channel(&self, address: &str) -> Result<Channel, ApiError> {
        let known = self.channels.lock().unwrap_or_else(std::sync::PoisonError::into_inner).get(address).cloned();
        if let Some(channel) = known {
            return Ok(channel);
        }
        let channel = cara_transport::connect(&self.env, address, self.tls.client(), CONNECT)
            .await
            .map_err(|error| ApiError::NoQuorum(format!("the leader can't be reached: {}", chain(&error))))?;
        let mut channels = self.channels.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        channels.insert(address.to_owned(), channel.clone());
        Ok(channel)
    }

    /// The next call to anybody connects anew, with the certificate that is used by then.
    pub fn forget_all(&self) {
        self.channels.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
    }

    /// One call to the server at `address`.
    ///
    /// # Errors
    /// When that server can't be reached, does not lead, or refuses.
    pub async fn call<T, F>(
        &self,
        address: &str,
        limit: Duration,
        call: impl FnOnce(ClusterClient<Channel>) -> F,
    ) -> Result<T, ApiError>
    where
        F: Future<Output = Result<tonic::Response<T>, tonic::Status>>,
    {
        let client = ClusterClient::new(self.channel(address).await?);
        match cara_env::timeout(&*self.env.clock, limit, call(client)).await {
            Ok(Ok(answer)) => Ok(answer.into_inner()),
            Ok(Err(status)) => {
                self.forget(address);
                Err(ApiError::NoQuorum(format!("{address} refuses: {}", status.message())))
            }
            Err(_) => {
                self.forget(address);
                Err(ApiError::Unconfirmed)
            }
        }
    }

    fn forget(&self, address: &str) {
        self.channels.lock().unwrap_or_else(std::sync::PoisonError::into_inner).remove(address);
    }

    /// Tells the server at `address` what this one supports.
    ///
    /// # Errors
    /// When that server can't be reached, does not lead, or refuses.
    pub async fn announce(&self, address: &str, feature_level: u32, limit: Duration) -> Result<(), ApiError> {
        let request = AnnounceRequest { feature_level };
        let call = |mut client: ClusterClient<Channel>| async move { client.announce(request).await };
        self.call(address, limit, call).await.map(drop)
    }

    /// Asks the server at `address`, which should lead, for a root token for this server's operator.
    ///
    /// # Errors
    /// When that server can't be reached, or refuses; an outcome that is unknown is found out by asking again.
    pub async fn recover_token(
        &self,
        address: &str,
        request: RecoverTokenRequest,
        limit: Duration,
    ) -> Result<RecoverTokenResponse, ApiError> {
        let call = |mut client: ClusterClient<Channel>| async move { client.recover_token(request).await };
        self.call(address, limit, call).await
    }

    /// Tells the server at `address` when this one let in which API tokens.
    ///
    /// # Errors
    /// As [`Forwarder::announce`].
    pub async fn note_uses(&self, address: &str, used: Vec<ApiTokenUse>, limit: Duration) -> Result<(), ApiError> {
        let used = used.into_iter().map(|used| TokenUse { token_id: used.token.to_string(), at_ms: used.at_ms });
        let request = NoteTokenUseRequest { used: used.collect() };
        let call = |mut client: ClusterClient<Channel>| async move { client.note_token_use(request).await };
        self.call(address, limit, call).await.map(drop)
    }

    /// Sends the request to the server at `address` and returns its answer.
    ///
    /// # Errors
    /// When that server can't be reached, or its answer breaks off before it began: for a change the outcome is then
    /// unknown.
    pub async fn send(&self, address: &str, request: HttpRequest, limit: Duration) -> Result<Response<Body>, ApiError> {
        let channel = self.channel(address).await?;
        let mut client = ClusterClient::new(channel);
        let work = async {
            let mut parts = client.forward(request).await?.into_inner();
            let first = parts.message().await?;
            Ok::<_, tonic::Status>((first, parts))
        };
        let (first, parts) = match cara_env::timeout(&*self.env.clock, limit, work).await {
            Ok(Ok((Some(first), parts))) => (first, parts),
            Ok(Err(status)) if status.code() == tonic::Code::FailedPrecondition => {
                return Err(ApiError::NotLeader { leader: None });
            }
            _ => {
                self.forget(address);
                return Err(ApiError::Unconfirmed);
            }
        };
        let mut response = Response::new(body_of(first.data, parts));
        *response.status_mut() = u16::try_from(first.status)
            .ok()
            .and_then(|s| StatusCode::from_u16(s).ok())
            .unwrap_or(StatusCode::BAD_GATEWAY);
        put_headers(response.headers_mut(), first.headers);
        Ok(response)
    }
}

/// The body out of its parts. A part without data becomes no frame: the first one always is such a part, and clients take a
/// connection on which many frames are empty for an attack and end it.
fn body_of(
    first: Vec<u8>,
    rest: impl tokio_stream::Stream<Item = Result<HttpPart, tonic::Status>> + Send + 'static,
) -> Body {
    let rest = rest.map(|part| part.map(|part| Bytes::from(part.data)));
    let all = tokio_stream::once(Ok(Bytes::from(first))).chain(rest);
    Body::from_stream(all.filter(|data| !data.as_ref().is_ok_and(Bytes::is_empty)))
}

/// The headers that are handed on.
pub fn carried(headers: &HeaderMap) -> Vec<Header> {
    let carry = |name: &&str| {
        headers.get(*name).map(|value| Header { name: (*name).to_owned(), value: value.as_bytes().to_vec() })
    };
    CARRIED.iter().filter_map(carry).collect()
}

/// Adds headers that came over the wire; those that aren't valid are left out.
pub fn put_headers(into: &mut HeaderMap, headers: Vec<Header>) {
    for header in headers {
        if let (Ok(name), Ok(value)) =
            (HeaderName::from_bytes(header.name.as_bytes()), HeaderValue::from_bytes(&header.value))
        {
            into.insert(name, value);
        }
    }
}

/// An answer in parts: status and headers first, with what there is of the body already, then the rest as it comes.
pub fn parts_of(response: Response<Body>) -> impl tokio_stream::Stream<Item = Result<HttpPart, tonic::Status>> {
    let headers = response
        .headers()
        .iter()
        .map(|(name, value)| Header { name: name.as_str().to_owned(), value: value.as_bytes().to_vec() })
        .collect();
    let mut first = HttpPart { status: u32::from(response.status().as_u16()), headers, data: Vec::new() };
    let mut body = response.into_body().into_data_stream().fuse().map(|data| match data {
        Ok(data) => Ok(data.to_vec()),
        Err(error) => Err(tonic::Status::aborted(error.to_string())),
    });
    // Nearly every answer is whole by now, and one message costs half of two.
    let broken = match body.next().now_or_never() {
        Some(Some(Ok(data))) => {
            first.data = data;
            None
        }
        Some(Some(Err(status))) => Some(Err(status)),
        Some(None) | None => None,
    };
    let rest = body.map(|data| data.map(|data| HttpPart { data, ..HttpPart::default() }));
    tokio_stream::once(Ok(first)).chain(tokio_stream::iter(broken)).chain(rest)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn an_answer_that_is_whole_is_one_part_and_one_that_is_not_streams() {
        let whole: Vec<_> = parts_of(Response::new(Body::from("all"))).collect().await;
        let whole: Vec<_> = whole.into_iter().map(|part| part.map(|part| (part.status, part.data)).ok()).collect();
        assert_eq!(whole, [Some((200, b"all".to_vec()))]);

        let (send, receive) = tokio::sync::mpsc::channel::<Result<Bytes, std::io::Error>>(4);
        let following = Response::new(Body::from_stream(tokio_stream::wrappers::ReceiverStream::new(receive)));
        let mut parts = Box::pin(parts_of(following));
        let first = parts.next().await.expect("a part").expect("whole");
        assert_eq!((first.status, first.data.len()), (200, 0), "the head does not wait for the body");
        send.send(Ok(Bytes::from_static(b"line"))).await.expect("is read");
        assert_eq!(parts.next().await.expect("a part").expect("whole").data, b"line");
        send.send(Err(std::io::Error::other("it broke off"))).await.expect("is read");
        assert!(parts.next().await.expect("a part").is_err());
    }

    #[tokio::test]
    async fn a_part_without_data_becomes_no_frame() {
        let part = |data: &str| Ok(HttpPart { data: data.as_bytes().to_vec(), ..HttpPart::default() });
        let parts = vec![part("a"), part(""), part("b"), Err(tonic::Status::aborted("it broke off"))];
        let mut data = body_of(Vec::new(), tokio_stream::iter(parts)).into_data_stream();
        let mut seen = Vec::new();
        while let Some(frame) = data.next().await {
            seen.push(frame.ok());
        }
        assert_eq!(seen, [Some(Bytes::from_static(b"a")), Some(Bytes::from_static(b"b")), None]);
    }
}
