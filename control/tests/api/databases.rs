//! Databases by engine, what uses them, and who sees the password.

use std::collections::BTreeMap;

use cara_proto::workload::Assignment;
use serde_json::{Value, json};

use crate::agent::{Agent, status};
use crate::harness::{Server, app};

/// The manifest of a database.
pub fn database(name: &str) -> Value {
    json!({
        "apiVersion": "caravanserai/v1", "kind": "Database", "metadata": { "name": name },
        "spec": { "engine": "postgres", "resources": { "cpu": "500m", "memory": "256Mi" } },
    })
}

fn env(of: &Assignment) -> BTreeMap<String, String> {
    let service = &of.spec.as_ref().unwrap().services[0];
    service.env.iter().map(|var| (var.name.clone(), var.value.clone())).collect()
}

#[tokio::test]
async fn a_database_follows_from_its_engine() {
    let server = Server::start().await;
    let a = Agent::join(&server, "a").await;
    let made = server.post("/api/v1/databases", &database("shop")).await;
    assert_eq!(made.status, 201, "{}", made.body);
    let spec = made.json()["spec"].clone();
    let resources = json!({ "cpu": "500m", "memory": "256Mi" });
    assert_eq!(spec, json!({ "engine": "postgres", "version": "16", "resources": resources }));
    let told = a.told_to("run", "shop").await;
    let service = told.spec.as_ref().unwrap().services[0].clone();
    assert_eq!((service.image.as_str(), service.health_check.unwrap().probe.as_str()), ("postgres:16", "exec"));
    assert_eq!(service.mounts[0].path, "/var/lib/postgresql/data");
    assert!(!told.spec.as_ref().unwrap().volumes[0].ephemeral);
    let password = env(&told)["POSTGRES_PASSWORD"].clone();
    assert_eq!(password.len(), 32);

    // Nothing that a reader sees has the password.
    for path in ["/api/v1/databases", "/api/v1/databases/shop", "/api/v1/workloads"] {
        assert!(!server.get(path).await.body.contains(&password), "{path}");
    }
    let url = server.get("/api/v1/databases/shop/connection").await.json()["url"].as_str().unwrap().to_owned();
    assert!(url.starts_with(&format!("postgres://app:{password}@a.lan:")) && url.ends_with("/app"), "{url}");
    assert_eq!(server.get("/api/v1/apps/shop/connection").await.code(), "no-such-path");

    // What is shown can be applied again: the same password, the same port, nothing changed.
    let again = server.put("/api/v1/databases/shop", &made.json()).await;
    assert_eq!(again.status, 200, "{}", again.body);
    assert_eq!(server.get("/api/v1/databases/shop/connection").await.json()["url"].as_str().unwrap(), url);
    let mut archived = database("shop");
    archived["spec"]["walArchive"] = json!(true);
    let put = server.put("/api/v1/databases/shop", &archived).await;
    assert_eq!(put.json()["spec"]["walArchive"], true, "{}", put.body);
    let told = a.told(|set| set[0].spec.as_ref().unwrap().volumes.len() == 2).await.remove(0);
    assert_eq!(env(&told)["POSTGRES_PASSWORD"], password);
    server.stop().await;
}

#[tokio::test]
async fn an_app_is_told_where_its_databases_are() {
    let server = Server::start().await;
    let a = Agent::join(&server, "a").await;
    for name in ["shop", "orders-eu"] {
        assert_eq!(server.post("/api/v1/databases", &database(name)).await.status, 201);
        let told = a.told(|set| set.iter().any(|a| a.name == name)).await;
        a.says(status(told.iter().find(|a| a.name == name).unwrap(), "Running")).await;
    }
    let url = async |name: &str| {
        let connection = server.get(&format!("/api/v1/databases/{name}/connection")).await.json();
        connection["url"].as_str().unwrap().to_owned()
    };
    let (shop, orders) = (url("shop").await, url("orders-eu").await);
    assert_ne!(shop.rsplit(':').next(), orders.rsplit(':').next(), "each has a port of its own");
    let mut web = app("web");
    web["spec"]["databases"] = json!(["shop"]);
    let made = server.post("/api/v1/apps", &web).await;
    assert_eq!((made.status, &made.json()["spec"]["databases"]), (201, &json!(["shop"])), "{}", made.body);
    let told = a.told_to("run", "web").await;
    assert_eq!(env(&told), BTreeMap::from([("A".into(), "1".into()), ("DATABASE_URL".into(), shop.clone())]));
    assert!(!server.get("/api/v1/apps/web").await.body.contains(&shop), "it is in no manifest");
    web["spec"]["databases"] = json!(["shop", "orders-eu"]);
    web["spec"]["env"] = json!([{ "name": "SHOP_URL", "value": "mine" }]);
    assert_eq!(server.put("/api/v1/apps/web", &web).await.status, 200);
    let told = a.told(|set| set.iter().any(|a| a.name == "web" && a.generation == 2)).await;
    let web = told.iter().find(|a| a.name == "web").unwrap();
    let expected = BTreeMap::from([("SHOP_URL".into(), "mine".into()), ("ORDERS_EU_URL".into(), orders)]);
    assert_eq!(env(web), expected, "what the user wrote goes first");
    server.stop().await;
}

#[tokio::test]
async fn mistakes_about_databases_are_named() {
    let server = Server::start().await;
    assert_eq!(server.post("/api/v1/databases", &database("shop")).await.status, 201);
    let with = |key: &str, value: Value| {
        let mut manifest = database("other");
        manifest["spec"][key] = value;
        manifest
    };
    let cases = [
        (with("engine", json!("oracle")), "invalid-request", "spec.engine"),
        (with("image", json!("postgres:16")), "invalid-request", "leave out image"),
        (with("volumes", json!([{ "name": "x", "type": "Managed" }])), "invalid-request", "volumes"),
        (with("version", json!("16 beta")), "invalid-field", "spec.version"),
        (with("resources", json!({ "memory": "lots" })), "invalid-request", "spec.resources.memory"),
    ];
    for (body, code, word) in cases {
        let answer = server.post("/api/v1/databases", &body).await;
        assert_eq!((answer.status, answer.code().as_str()), (400, code), "{}", answer.body);
        assert!(answer.json()["detail"].as_str().unwrap().contains(word), "{}", answer.body);
    }
    let mut redis = database("cache");
    redis["spec"]["engine"] = json!("redis");
    redis["spec"]["walArchive"] = json!(true);
    let answer = server.post("/api/v1/databases", &redis).await;
    assert!(answer.json()["detail"].as_str().unwrap().starts_with("spec.walArchive"), "{}", answer.body);
    let mut other_engine = database("shop");
    other_engine["spec"]["engine"] = json!("mysql");
    let answer = server.put("/api/v1/databases/shop", &other_engine).await;
    assert_eq!(answer.status, 400, "{}", answer.body);
    let mut web = app("web");
    web["spec"]["databases"] = json!(["shop", "shpo"]);
    let answer = server.post("/api/v1/apps", &web).await;
    assert_eq!((answer.status, answer.code().as_str()), (400, "unknown-database"));
    assert!(answer.json()["detail"].as_str().unwrap().contains("spec.databases[1]"), "{}", answer.body);
    server.stop().await;
}
