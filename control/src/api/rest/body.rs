//! Request and response bodies: bounded, strict on the way in, with the revision on the way out.

use axum::body::{Body, Bytes};
use axum::response::{IntoResponse, Response};
use cara_proto::rest::{API_VERSION, List};
use http::{HeaderValue, StatusCode, header};
use serde::Serialize;
use serde::de::DeserializeOwned;

use crate::error::ApiError;

/// The whole body, up to `max` bytes.
pub async fn read(body: Body, max: usize) -> Result<Bytes, ApiError> {
    axum::body::to_bytes(body, max).await.map_err(|_| ApiError::Bad {
        status: StatusCode::PAYLOAD_TOO_LARGE,
        code: "body-too-large",
        detail: format!("the body is larger than {max} bytes, or broke off"),
        hint: "send less at once",
    })
}

/// Parses a body. The error names the line and the field.
pub async fn parse<T: DeserializeOwned>(body: Body, max: usize) -> Result<T, ApiError> {
    let bytes = read(body, max).await?;
    serde_json::from_slice(&bytes).map_err(|error| ApiError::Bad {
        status: StatusCode::BAD_REQUEST,
        code: "invalid-body",
        detail: error.to_string(),
        hint: "correct the body and send it again; the API takes JSON",
    })
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
