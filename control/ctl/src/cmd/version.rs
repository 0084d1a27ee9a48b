//! `version`.

use serde_json::json;

use super::Context;
use crate::failure::Outcome;

pub(super) fn run(cx: &Context) -> Outcome {
    let version = env!("CARGO_PKG_VERSION");
    if cx.ui.structured() {
        return cx.ui.value(&json!({ "caractrl": version }));
    }
    cx.ui.data(&format!("caractrl {version}"));
    Ok(())
}
