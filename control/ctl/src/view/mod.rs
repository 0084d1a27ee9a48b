//! Objects of the API as rows of tables. They are read as JSON values by path, so that this program also shows what
//! a newer server sends; the tests make them from the types of `cara-proto`, so that a renamed field is noticed.

mod api_token;
mod audit;
mod describe;
pub(crate) mod drains;
pub(crate) mod moves;
mod node;
mod placement;
mod server;
mod token;
mod workload;

use serde_json::Value;

use crate::kind::Kind;
use crate::out::Table;

pub(crate) use audit::audit;
pub(crate) use describe::describe;
pub(crate) use node::{conditions, events};
pub(crate) use placement::{placement, volumes};
pub(crate) use server::{rows as server_rows, summary};
pub(crate) use workload::{image, ready};

/// The table of objects of one kind. `Workload` shows the kind in a column of its own.
pub(crate) fn table(kind: Kind, items: &[Value], wide: bool, now_ms: u64) -> Table {
    match kind {
        Kind::Node => node::table(items, wide, now_ms),
        Kind::App | Kind::Project | Kind::Database => workload::table(items, wide, false, now_ms),
        Kind::Workload => workload::table(items, wide, true, now_ms),
        Kind::Server => server::table(items, wide),
        Kind::Token => token::table(items, now_ms),
        Kind::ApiToken => api_token::table(items, wide, now_ms),
    }
}

/// A text, number or boolean at a JSON pointer; empty when it is absent.
pub(crate) fn text(value: &Value, pointer: &str) -> String {
    match value.pointer(pointer) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        Some(Value::Bool(true)) => "yes".to_owned(),
        Some(Value::Bool(false)) => "no".to_owned(),
        _ => String::new(),
    }
}

/// The elements of a list at a JSON pointer.
pub(crate) fn list<'a>(value: &'a Value, pointer: &str) -> &'a [Value] {
    value.pointer(pointer).and_then(Value::as_array).map_or(&[], Vec::as_slice)
}

/// `k=v,k=v` of a map at a JSON pointer.
pub(crate) fn pairs(value: &Value, pointer: &str) -> String {
    let map = value.pointer(pointer).and_then(Value::as_object);
    let pair = |(key, value): (&String, &Value)| format!("{key}={}", value.as_str().unwrap_or_default());
    map.map(|map| map.iter().map(pair).collect::<Vec<_>>().join(",")).unwrap_or_default()
}

/// A workload as the API gives it, for tests of other modules.
#[cfg(test)]
pub(crate) fn tests_sample(phase: &str) -> Value {
    workload::tests::sample(phase)
}
