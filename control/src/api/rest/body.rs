//! Request and response bodies: bounded, strict on the way in, with the revision on the way out.

use std::time::Duration;

use axum::body::{Body, Bytes};
use axum::extract::Request;
use axum::response::{IntoResponse, Response};
use cara_env::Clock;
use cara_proto::rest::{API_VERSION, List};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::api::Api;
use crate::error::ApiError;

/// How deep a body may be nested: a manifest has seven levels. Parsers recurse, and their stack is not the caller's to fill.
const DEPTH_MAX: usize = 32;

/// The whole body, up to `max` bytes.
pub async fn read(body: Body, max: usize) -> Result<Bytes, ApiError> {
    axum::body::to_bytes(body, max).await.map_err(|_| ApiError::Bad {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        code: "body-too-large",
        detail: format!("the body is larger than {max} bytes, or broke off"),
        hint: "send less at once",
    })
}

/// The request with its whole body here. A client that sends slowly is not waited for longer than any request may take.
pub async fn arrived(api: &Api, request: Request) -> Result<Request, ApiError> {
    let (head, body) = request.into_parts();
    let bytes = read_within(&*api.env.clock, api.config.request_deadline, body, api.config.body_max).await?;
    Ok(Request::from_parts(head, Body::from(bytes)))
}

async fn read_within(clock: &dyn Clock, limit: Duration, body: Body, max: usize) -> Result<Bytes, ApiError> {
    cara_env::timeout(clock, limit, read(body, max)).await.map_err(|_| ApiError::Bad {
        status: StatusCode::REQUEST_TIMEOUT,
        code: "body-too-slow",
        detail: format!("the body did not arrive within {limit:?}"),
        hint: "send it again, over a faster connection",
    })?
}

/// Parses a body. The error names the line and the field.
pub async fn parse<T: DeserializeOwned>(body: Body, max: usize) -> Result<T, ApiError> {
    let bytes = read(body, max).await?;
    if depth(&bytes) > DEPTH_MAX {
        return Err(ApiError::Bad {
            status: StatusCode::BAD_REQUEST,
            code: "body-too-deep",
            detail: format!("the body is nested deeper than {DEPTH_MAX} levels"),
            hint: "no body of this API is nested like that; correct it and send it again",
        });
    }
    serde_json::from_slice(&bytes).map_err(|error| ApiError::Bad {
        status: StatusCode::BAD_REQUEST,
        code: "invalid-body",
        detail: error.to_string(),
        hint: "correct the body and send it again; the API takes JSON",
    })
}

/// How deep objects and arrays are nested, brackets in strings apart. Of what is no JSON it gives some number, and the
/// parser refuses it.
fn depth(json: &[u8]) -> usize {
    let (mut now, mut most) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json {
        match (in_string, byte) {
            (true, _) if escaped => escaped = false,
            (true, b'\\') => escaped = true,
            (_, b'"') => in_string = !in_string,
            (false, b'{' | b'[') => {
                now += 1;
                most = most.max(now);
            }
            (false, b'}' | b']') => now = now.saturating_sub(1),
            _ => {}
        }
    }
    most
}

/// As [`parse`]; an empty body is the default.
pub async fn parse_or_default<T: DeserializeOwned + Default>(body: Body, max: usize) -> Result<T, ApiError> {
    let bytes = read(body, max).await?;
    if bytes.is_empty() {
        return Ok(T::default());
    }
    parse(Body::from(bytes), max).await
}

/// An object with its revision as ETag.
pub fn object<T: Serialize>(status: StatusCode, revision: u64, value: &T) -> Response {
    let mut response = json(status, value);
    if let Ok(tag) = HeaderValue::from_str(&format!("\"r{revision}\"")) {
        response.headers_mut().insert(header::ETAG, tag);
    }
    response
}

/// A list as of one revision.
pub fn list<T: Serialize>(kind: &str, revision: u64, items: Vec<T>) -> Response {
    let list = List { api_version: API_VERSION.into(), kind: format!("{kind}List"), revision, items };
    json(StatusCode::OK, &list)
}

/// Any value as JSON.
pub fn json<T: Serialize>(status: StatusCode, value: &T) -> Response {
    match serde_json::to_vec(value) {
        Ok(bytes) => (status, [(header::CONTENT_TYPE, "application/json")], bytes).into_response(),
        Err(error) => ApiError::Internal(format!("can't write the answer: {error}")).into_response(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn depth_counts_brackets_outside_of_strings() {
        for (json, deep) in [
            ("", 0),
            ("{}", 1),
            (r#"{"a":[{"b":1}]}"#, 3),
            (r#"{"a":"[[[["}"#, 1),
            (r#"{"a":"\"[[[["}"#, 1),
            (r#"{"a":"\\","b":[1]}"#, 2),
            ("]]]][", 1),
        ] {
            assert_eq!(depth(json.as_bytes()), deep, "{json}");
        }
    }

    #[tokio::test]
    async fn a_body_that_is_nested_too_deep_is_refused_before_it_is_parsed() {
        let nested = |levels: usize| Body::from("[".repeat(levels) + &"]".repeat(levels));
        let refused = parse::<serde_json::Value>(nested(DEPTH_MAX + 1), 1 << 20).await.expect_err("too deep");
        assert_eq!(refused.code(), "body-too-deep");
        parse::<serde_json::Value>(nested(DEPTH_MAX), 1 << 20).await.expect("as deep as may be");
    }

    #[tokio::test(start_paused = true)]
    async fn a_body_that_does_not_come_is_not_waited_for() {
        let clock = cara_env::RealClock::new();
        let first = tokio_stream::once(Ok::<_, std::io::Error>(Bytes::from_static(b"{")));
        let body = Body::from_stream(tokio_stream::StreamExt::chain(first, tokio_stream::pending()));
        let refused = read_within(&clock, Duration::from_secs(10), body, 100).await.expect_err("the rest never comes");
        assert_eq!(refused.code(), "body-too-slow");
    }
}
