//! What clients send: manifests and requests.

use serde_json::{Value, json};

/// What manifests say of machines that are still to come.
pub fn declared_labels() -> Value {
    json!({ "described": "before-it-came" })
}

/// A POST that changes nothing when all is as it asks for.
pub fn finds_it_so(path: &str) -> bool {
    ["cordon", "revoke-cert"].iter().any(|verb| path.ends_with(verb))
}

/// Less patient than usual: a simulated minute is short.
pub fn move_body() -> Value {
    json!({ "verify_timeout_s": 20, "attempts": 5, "interval_s": 1 })
}

/// An app whose annotation holds the value of a register.
pub fn app(name: &str, value: Option<u64>) -> Value {
    let mut metadata = json!({ "name": name });
    if let Some(value) = value {
        metadata["annotations"] = json!({ "value": value.to_string() });
    }
    json!({
        "apiVersion": "caravanserai/v1",
        "kind": "App",
        "metadata": metadata,
        "spec": { "image": "busybox:1" },
    })
}

/// Two services that share a network and a volume.
pub fn project(name: &str, _value: Option<u64>) -> Value {
    let service = |name: &str| {
        json!({
            "name": name,
            "image": "busybox:1",
            "volumeMounts": [{ "name": "data", "mountPath": "/data" }],
        })
    };
    json!({
        "apiVersion": "caravanserai/v1",
        "kind": "Project",
        "metadata": { "name": name },
        "spec": { "services": [service("web"), service("db")], "volumes": [{ "name": "data", "type": "Managed" }] },
    })
}

/// The value that [`app`] was given.
pub fn value_of(app: &Value) -> Option<u64> {
    app["metadata"]["annotations"]["value"].as_str()?.parse().ok()
}
