//! `GET /api/v1/openapi.json`: the API as OpenAPI 3.1, made from the table of routes.
//!
//! `deploy/openapi.json` is the same text, checked in, so that a change of the API is seen in review; a test compares the two.
//! What every route can end with is here; what only some can end with stands in their rows.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::OnceLock;

use axum::response::Response;
use cara_proto::rest::{PROBLEM_TYPE, Problem};
use http::{Method, StatusCode, header};
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use super::route::{Answer, Route};
use super::table;
use crate::error::status_of;

/// Where OpenAPI keeps what is named.
const SCHEMAS: &str = "#/components/schemas/";
/// And the problems.
const RESPONSES: &str = "#/components/responses/";
/// What is sent has another schema than what comes back (defaults may be left out), so it has another name.
const SENT: &str = "Sent";

/// Of every request: the router's, the door's and the road's.
const ALWAYS: &[&str] = &["invalid-request", "rate-limited", "internal"];
/// Of every request that needs a token.
const WITH_TOKEN: &[&str] = &["unauthenticated", "forbidden", "out-of-scope", "no-quorum", "not-leader", "unconfirmed"];
/// Of every change: it goes through the log.
const CHANGES: &[&str] = &[
    "body-too-large",
    "body-too-slow",
    "entry-too-large",
    "storage-full",
    "too-many",
    "busy",
    "request-id-reused",
    "invalid-field",
    "feature-needed",
    "not-initialised",
    "wrong-incarnation",
];

/// The routes of this module.
pub fn routes() -> Vec<Route> {
    vec![Route::open("/openapi.json", show, "This document.").gives_text(200, "application/json")]
}

async fn show() -> Response {
    static TEXT: OnceLock<String> = OnceLock::new();
    let text = TEXT.get_or_init(|| text(&document(&table::routes())));
    let mut response = Response::new(text.as_str().into());
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static("application/json"));
    response
}

fn text(document: &Value) -> String {
    format!("{document:#}\n")
}

/// The document.
fn document(routes: &[Route]) -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.definitions_path = SCHEMAS.trim_start_matches('#').into();
        settings.meta_schema = None;
    });
    let mut shapes = Shapes {
        problems: BTreeMap::new(),
        sent: settings.clone().for_deserialize().into_generator(),
        given: settings.for_serialize().into_generator(),
    };
    let mut paths: BTreeMap<String, Map<String, Value>> = BTreeMap::new();
    for route in routes {
        let method = route.method.as_str().to_ascii_lowercase();
        paths.entry(route.path.clone()).or_default().insert(method, shapes.operation(route));
    }
    shapes.given.subschema_for::<Problem>(); // All of them refer to it.
    sorted(json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Caravanserai",
            "version": env!("CARGO_PKG_VERSION"),
            "license": { "name": "Apache-2.0", "identifier": "Apache-2.0" },
            "description": "Any server answers; one that doesn't lead catches up with the leader first, or hands the \
                request to it. Refusals are problems (RFC 9457) whose `code` is stable and whose `hint` says what to do \
                next. Answers carry `Cara-Revision`, the log index up to which they are true, and `Cara-Answered-By`.",
        },
        "paths": paths,
        "components": {
            "schemas": shapes.definitions(),
            "securitySchemes": { "token": { "type": "http", "scheme": "bearer", "description": "An API token, `cara_…`." } },
            "responses": shapes.problems,
        },
    }))
}

/// Collects the types that bodies use, and the problems.
struct Shapes {
    /// By status and codes: most routes share most of theirs.
    problems: BTreeMap<String, Value>,
    sent: SchemaGenerator,
    given: SchemaGenerator,
}

impl Shapes {
    fn operation(&mut self, route: &Route) -> Value {
        let mut operation = json!({
            "operationId": operation_id(route),
            "summary": route.summary,
            "tags": [tag(&route.path)],
            "parameters": self.parameters(route),
            "responses": self.responses(route),
        });
        if let Some(needs) = route.rule.needs {
            operation["security"] = json!([{ "token": [] }]);
            operation["x-ability"] = json!(needs.as_str());
            operation["description"] = json!(format!("Needs a token with the ability `{}`.", needs.as_str()));
        }
        if let Some(scope) = route.rule.scope {
            operation["x-scope"] = json!(scope);
        }
        if let Some(sent) = route.sent {
            let mut schema = as_sent((sent.shape)(&mut self.sent).to_value());
            if let Some(kind) = route.kind.filter(|_| schema["$ref"].as_str().is_some_and(|r| r.contains("Manifest"))) {
                schema = json!({ "allOf": [schema, { "properties": { "kind": { "const": kind.as_str() } } }] });
            }
            operation["requestBody"] =
                json!({ "required": sent.required, "content": { "application/json": { "schema": schema } } });
        }
        operation
    }

    fn parameters(&mut self, route: &Route) -> Vec<Value> {
        let mut all: Vec<Value> = names_in(&route.path)
            .map(|name| {
                let schema = json!({ "type": "string", "minLength": 1, "maxLength": 253 });
                json!({ "name": name, "in": "path", "required": true, "schema": schema })
            })
            .collect();
        if let Some(query) = route.query {
            let object = query(&mut self.sent).to_value();
            for (name, schema) in object["properties"].as_object().into_iter().flatten() {
                let mut schema = as_sent(schema.clone());
                let description = schema.as_object_mut().and_then(|schema| schema.remove("description"));
                let description = description.unwrap_or_default();
                all.push(json!({ "name": name, "in": "query", "schema": schema, "description": description }));
            }
        }
        if route.rule.needs.is_some() && route.method == Method::GET && !route.rule.local {
            all.push(json!({
                "name": "consistency", "in": "query", "schema": { "enum": ["linearizable", "stale"] },
                "description": "`stale`: from the memory of the server that is asked, without asking for a quorum.",
            }));
        }
        if route.is_change() {
            all.push(json!({
                "name": "Idempotency-Key", "in": "header",
                "schema": { "type": "string", "minLength": 1, "maxLength": 128, "pattern": "^[!-~]+$" },
                "description": "A repetition with the same key is not carried out twice and gets the same answer.",
            }));
        }
        if route.versioned {
            all.push(json!({
                "name": "If-Match", "in": "header", "schema": { "type": "string", "pattern": "^\"r[0-9]{1,18}\"$" },
                "description": "The `ETag` of what was read: refused when it has changed since.",
            }));
        }
        all
    }

    fn responses(&mut self, route: &Route) -> BTreeMap<String, Value> {
        let mut all = BTreeMap::new();
        for (status, answer) in &route.answers {
            let mut response = json!({ "description": reason(*status) });
            match answer {
                Answer::Empty => {}
                Answer::Json(shape) => {
                    let schema = shape(&mut self.given).to_value();
                    response["content"] = json!({ "application/json": { "schema": schema } });
                }
                Answer::Text(content_type) => response["content"] = json!({ *content_type: {} }),
            }
            all.insert(status.to_string(), response);
        }
        for (status, codes) in problems(route) {
            let name = format!("{status}_{}", codes.iter().copied().collect::<Vec<_>>().join("_"));
            all.insert(status.to_string(), json!({ "$ref": format!("{RESPONSES}{name}") }));
            self.problems.insert(name, problem(status, &codes));
        }
        all
    }

    fn definitions(&mut self) -> BTreeMap<String, Value> {
        let mut all: BTreeMap<_, _> = self.given.take_definitions(true).into_iter().collect();
        for (name, schema) in self.sent.take_definitions(true) {
            all.insert(format!("{name}{SENT}"), as_sent(schema));
        }
        all
    }
}

/// A problem with one of these codes.
fn problem(status: u16, codes: &BTreeSet<&str>) -> Value {
    let only = json!({ "properties": { "code": { "enum": codes }, "status": { "const": status } } });
    let schema = json!({ "allOf": [{ "$ref": format!("{SCHEMAS}Problem") }, only] });
    let mut response = json!({ "description": reason(status), "content": { PROBLEM_TYPE: { "schema": schema } } });
    if status == StatusCode::TOO_MANY_REQUESTS.as_u16() {
        let schema = json!({ "type": "integer", "minimum": 1 });
        let header = json!({ "description": "Seconds; with `rate-limited` only.", "schema": schema });
        response["headers"] = json!({ "Retry-After": header });
    }
    response
}

/// All codes that a route can end with, by status.
fn problems(route: &Route) -> BTreeMap<u16, BTreeSet<&'static str>> {
    let mut codes: Vec<&str> = ALWAYS.to_vec();
    if route.rule.needs.is_some() {
        codes.extend(WITH_TOKEN);
    }
    if route.is_change() {
        codes.extend(CHANGES);
    }
    if route.sent.is_some() {
        codes.extend(["invalid-body", "body-too-deep"]);
    }
    if route.versioned {
        codes.push("revision-mismatch");
    }
    codes.extend(&route.codes);
    let usual = codes.into_iter().map(|code| {
        let status = status_of(code).expect("a test looks up every code of the table");
        (status.as_u16(), code)
    });
    let mut by_status: BTreeMap<u16, BTreeSet<&str>> = BTreeMap::new();
    for (status, code) in usual.chain(route.codes_as.iter().copied()) {
        by_status.entry(status).or_default().insert(code);
    }
    by_status
}

fn names_in(path: &str) -> impl Iterator<Item = &str> {
    path.split('/').filter_map(|part| part.strip_prefix('{')?.strip_suffix('}'))
}

/// `get /api/v1/nodes/{node}/labels` is `getNodesNodeLabels`.
fn operation_id(route: &Route) -> String {
    let words =
        route.path.trim_start_matches("/api/v1").split(['/', '-', '.', '{', '}']).filter(|word| !word.is_empty());
    let mut id = route.method.as_str().to_ascii_lowercase();
    for word in words {
        let (first, rest) = word.split_at(1);
        id.push_str(&first.to_ascii_uppercase());
        id.push_str(rest);
    }
    id
}

fn tag(path: &str) -> &str {
    match path.strip_prefix("/api/v1/").and_then(|rest| rest.split('/').next()) {
        Some("openapi.json") | None => "probes",
        Some(noun) => noun,
    }
}

fn reason(status: u16) -> &'static str {
    StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason()).unwrap_or_default()
}

/// With references to what is sent, where they lead to what comes back.
fn as_sent(mut schema: Value) -> Value {
    match &mut schema {
        Value::Object(fields) => {
            for (name, value) in fields.iter_mut() {
                let is_reference = name == "$ref" && value.as_str().is_some_and(|to| !to.ends_with(SENT));
                *value = match value.take() {
                    Value::String(to) if is_reference => Value::String(to + SENT),
                    other => as_sent(other),
                };
            }
        }
        Value::Array(items) => items.iter_mut().for_each(|item| *item = as_sent(item.take())),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
    schema
}

/// The same with its keys in order, whatever the map of this build does.
fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let ordered: BTreeMap<_, _> = fields.into_iter().map(|(name, value)| (name, sorted(value))).collect();
            Value::Object(ordered.into_iter().collect())
        }
        Value::Array(items) => Value::Array(items.into_iter().map(sorted).collect()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_checked_in_document_is_this_one() {
        let path = concat!(env!("CARGO_MANIFEST_DIR"), "/../deploy/openapi.json");
        let document = document(&table::routes());
        if std::env::var_os("CARA_UPDATE").is_some() {
            std::fs::write(path, text(&document)).expect("deploy can be written");
        }
        let kept: Value = std::fs::read_to_string(path).expect("it is checked in").parse().expect("it is JSON");
        assert!(
            kept == document,
            "the API has changed: run `make openapi`, and look at what it did to deploy/openapi.json"
        );
    }

    #[test]
    fn every_route_is_in_the_document_and_nothing_else() {
        let routes = table::routes();
        let document = document(&routes);
        let documented: BTreeSet<(String, String)> = document["paths"]
            .as_object()
            .expect("paths")
            .iter()
            .flat_map(|(path, methods)| {
                let methods = methods.as_object().expect("methods").keys();
                methods.map(|method| (path.clone(), method.to_ascii_uppercase())).collect::<Vec<_>>()
            })
            .collect();
        let known: BTreeSet<_> = routes.iter().map(|route| (route.path.clone(), route.method.to_string())).collect();
        assert_eq!(documented, known);
        let ids: BTreeSet<_> = routes.iter().map(operation_id).collect();
        assert_eq!(ids.len(), routes.len(), "each operation has an id of its own");
    }

    #[test]
    fn every_code_has_a_status_and_every_route_an_answer() {
        for route in table::routes() {
            assert!(!route.answers.is_empty(), "{} {} gives nothing", route.method, route.path);
            assert!(route.summary.ends_with('.'), "{}", route.summary);
            for code in &route.codes {
                assert!(status_of(code).is_some(), "{code} of {} has no status", route.path);
            }
        }
        for code in [ALWAYS, WITH_TOKEN, CHANGES, &["invalid-body", "body-too-deep", "revision-mismatch"]].concat() {
            assert!(status_of(code).is_some(), "{code}");
        }
    }

    #[test]
    fn what_is_sent_may_leave_out_what_has_a_default() {
        let document = document(&table::routes());
        let schemas = &document["components"]["schemas"];
        let required = |name: &str| schemas[name]["required"].to_string();
        assert!(!required("NodeSpecSent").contains("unschedulable"), "{schemas:#}");
        assert!(required("NodeSpec").contains("unschedulable"));
    }
}
