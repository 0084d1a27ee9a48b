//! `nodes list`: all of them, or a page.

use super::super::{Context, get, segment};
use crate::cli::NodesList;
use crate::client::Client;
use crate::failure::Outcome;
use crate::kind::Kind;

pub(super) async fn run(cx: &Context, client: &Client, words: &NodesList) -> Outcome {
    let words = [
        words.q.as_ref().map(|text| format!("q={}", segment(text))),
        words.limit.map(|limit| format!("limit={limit}")),
        words.offset.map(|offset| format!("offset={offset}")),
    ];
    let query = words.into_iter().flatten().collect::<Vec<_>>().join("&");
    let query = if query.is_empty() { query } else { format!("?{query}") };
    get::list_of(cx, client, Kind::Node, &query).await
}
