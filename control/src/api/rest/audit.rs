//! `GET /api/v1/audit-log`: who changed what.

use axum::extract::{Query, State};
use axum::response::Response;
use http::StatusCode;
use schemars::JsonSchema;
use serde::Deserialize;

use super::body;
use crate::api::SharedApi;
use crate::api::audit::AuditFilter;
use crate::error::ApiError;
use crate::wire::parse_time;

/// A page: a screen or two. An export asks for more at once.
const LIMIT_DEFAULT: usize = 100;
const LIMIT_MAX: usize = 1_000;

/// Which records, and where the page begins.
#[derive(Debug, Default, Deserialize, JsonSchema)]
pub struct AuditQuery {
    /// At most so many; 100 by default.
    #[schemars(range(min = 1, max = 1000))]
    limit: Option<usize>,
    /// Older than this revision, newest first.
    before: Option<u64>,
    /// Newer than this revision, oldest first.
    after: Option<u64>,
    /// Only of this actor.
    #[serde(default)]
    actor: String,
    /// Only about this object.
    #[serde(default)]
    subject: String,
    /// Only since this time.
    #[serde(default)]
    since: String,
}

/// One page of records: newest first, or oldest first with `after`.
pub async fn list(State(api): State<SharedApi>, Query(query): Query<AuditQuery>) -> Result<Response, ApiError> {
    let limit = query.limit.unwrap_or(LIMIT_DEFAULT);
    if !(1..=LIMIT_MAX).contains(&limit) {
        return Err(ApiError::invalid(format!("limit: is {limit}, must be 1 to {LIMIT_MAX}")));
    }
    if query.before.is_some() && query.after.is_some() {
        return Err(ApiError::invalid("before: and after go in two directions; give one of them"));
    }
    let since_ms = match query.since.as_str() {
        "" => None,
        text => Some(
            parse_time(text)
                .ok_or_else(|| ApiError::invalid(format!("since: {text:?} is not a time like 2030-01-31T12:00:00Z")))?,
        ),
    };
    let AuditQuery { before, after, actor, subject, .. } = query;
    let filter = AuditFilter { before, after, actor, subject, since_ms, limit };
    Ok(body::json(StatusCode::OK, &api.audit(&filter)))
}
