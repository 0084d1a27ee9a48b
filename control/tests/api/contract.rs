//! Every answer that a test gets is held against the OpenAPI document: its status, its content type, its code.

use std::path::PathBuf;
use std::sync::OnceLock;

use serde_json::Value;

use crate::harness::Answer;

/// The document that is checked in.
pub fn path() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../deploy/openapi.json")
}

fn document() -> &'static Value {
    static DOCUMENT: OnceLock<Value> = OnceLock::new();
    DOCUMENT.get_or_init(|| serde_json::from_str(&std::fs::read_to_string(path()).unwrap()).unwrap())
}

/// Fails the test when the document doesn't allow this answer. A path or a method that it doesn't know is refused, and that is
/// all.
pub fn check(method: &str, path: &str, answer: &Answer) {
    let path = path.split('?').next().unwrap();
    let Some(operation) = operation(method, path) else {
        assert!([401, 403, 404, 405, 429, 503].contains(&answer.status), "{method} {path} is not documented");
        return;
    };
    let documented = resolved(&operation["responses"][answer.status.to_string()]);
    assert!(!documented.is_null(), "{method} {path}: status {} is not documented: {}", answer.status, answer.body);
    let content_type = answer.headers.get("content-type").map(|kind| kind.to_str().unwrap());
    let Some(content_type) = content_type else {
        assert!(answer.body.is_empty() && documented["content"].is_null(), "{method} {path}: a body without a type");
        return;
    };
    let content = &documented["content"][content_type];
    assert!(!content.is_null(), "{method} {path}: {content_type} is not documented for {}", answer.status);
    if content_type == "application/problem+json" && method != "HEAD" {
        let codes = content["schema"]["allOf"][1]["properties"]["code"]["enum"].as_array().unwrap();
        assert!(
            codes.iter().any(|code| *code == answer.code()),
            "{method} {path}: code {} is not documented",
            answer.code()
        );
    }
}

/// What a reference leads to; anything else is itself.
fn resolved(value: &'static Value) -> &'static Value {
    let reference = value["$ref"].as_str().and_then(|reference| reference.strip_prefix('#'));
    reference.map_or(value, |pointer| document().pointer(pointer).unwrap())
}

/// The operation whose path fits; one without parameters goes first.
fn operation(method: &str, path: &str) -> Option<&'static Value> {
    let method = if method == "HEAD" { "get".to_owned() } else { method.to_ascii_lowercase() };
    let paths = document()["paths"].as_object().unwrap();
    let mut fitting: Vec<_> = paths.iter().filter(|(template, _)| fits(template, path)).collect();
    fitting.sort_by_key(|(template, _)| template.matches('{').count());
    fitting.first().and_then(|(_, methods)| methods.get(&method))
}

fn fits(template: &str, path: &str) -> bool {
    let (template, path): (Vec<_>, Vec<_>) = (template.split('/').collect(), path.split('/').collect());
    template.len() == path.len()
        && template.iter().zip(&path).all(|(t, p)| t == p || (t.starts_with('{') && !p.is_empty()))
}
