//! Every refusal is a problem, also where the framework refuses: a path that is no UTF-8, a query whose number is a word.

use axum::response::{IntoResponse, Response};
use cara_proto::rest::PROBLEM_TYPE;
use http::{StatusCode, header};

use super::body;
use crate::error::ApiError;

/// The framework's own refusals are one line of text; more than this is none of them.
const TEXT_MAX: usize = 4096;

/// The same response, as a problem if it refuses without being one.
pub async fn of_any_refusal(response: Response) -> Response {
    let content_type = response.headers().get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok());
    let is_ours = content_type.is_some_and(|kind| kind == PROBLEM_TYPE);
    if !response.status().is_client_error() || is_ours {
        return response;
    }
    let text = body::read(response.into_body(), TEXT_MAX).await.unwrap_or_default();
    let detail = String::from_utf8_lossy(&text).trim().to_owned();
    let detail = if detail.is_empty() { "the request can't be read".to_owned() } else { detail };
    ApiError::Bad {
        status: StatusCode::BAD_REQUEST,
        code: "invalid-request",
        detail,
        hint: "correct the request and send it again",
    }
    .into_response()
}
