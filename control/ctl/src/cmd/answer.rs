//! Answers of the API on stdout, in the wanted format.

use serde::de::DeserializeOwned;
use serde_json::Value;

use super::Context;
use crate::client::ClientError;
use crate::failure::Outcome;
use crate::out::{Format, Table};

/// A typed reading of an answer, which itself is kept for output.
///
/// # Errors
/// 1 when it is not what the API promises.
pub(super) fn typed<T: DeserializeOwned>(value: &Value) -> Outcome<T> {
    Ok(serde_json::from_value(value.clone()).map_err(|e| ClientError::Malformed(e.to_string()))?)
}

/// One object: as it came, as `kind/name`, or as `text` for people.
pub(super) fn one(cx: &Context, value: &Value, name: &str, text: &str) -> Outcome {
    match cx.ui.format {
        Format::Json | Format::Yaml => return cx.ui.value(value),
        Format::Name => cx.ui.data(name),
        Format::Table | Format::Wide => cx.ui.data(text),
    }
    Ok(())
}

/// A list: as it came, as names, or as a table. `when_empty` is what a person is told instead of an empty table.
pub(super) fn many(cx: &Context, value: &Value, names: &[String], table: &Table, when_empty: &str) -> Outcome {
    match cx.ui.format {
        Format::Json | Format::Yaml => return cx.ui.value(value),
        Format::Name => cx.ui.data(&names.join("\n")),
        Format::Table | Format::Wide => {
            cx.ui.table(table);
            if table.is_empty() && cx.ui.out_tty {
                cx.ui.note(when_empty);
            }
        }
    }
    Ok(())
}
