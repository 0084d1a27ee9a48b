//! What a node is, since when, and where it stands.

use cara_proto::agent::{EnrollRequest, agent_client::AgentClient};
use cara_proto::node::Facts;
use cara_transport::JoinToken;
use serde_json::{Value, json};

use crate::agent::Agent;
use crate::harness::{DEADLINE, Server};

async fn health(server: &Server, node: &str) -> Value {
    server.get(&format!("/api/v1/nodes/{node}/health")).await.json()
}

/// `status/reason` of a condition.
fn word(health: &Value, of: &str) -> String {
    let condition = health["conditions"].as_array().unwrap().iter().find(|c| c["type"] == of);
    let condition = condition.unwrap_or_else(|| panic!("no {of} in {health:#}"));
    format!("{}/{}", condition["status"].as_str().unwrap(), condition["reason"].as_str().unwrap())
}

#[tokio::test]
async fn a_nodes_health_follows_it_from_the_token_to_the_goodbye() {
    let server = Server::start().await;
    let manifest = json!({ "apiVersion": "caravanserai/v1", "kind": "Node", "metadata": { "name": "n1" } });
    assert_eq!(server.post("/api/v1/nodes", &manifest).await.status, 201);
    let waits = health(&server, "n1").await;
    assert_eq!(
        (word(&waits, "Heartbeat").as_str(), &waits["connection"]),
        ("Unknown/NeverConnected", &json!("pending"))
    );
    assert_eq!(word(&waits, "Ready"), "Unknown/NeverConnected");
    let agent = Agent::join(&server, "n1").await;
    let well = health(&server, "n1").await;
    assert_eq!(
        (word(&well, "Heartbeat"), word(&well, "Ready")),
        ("True/HeartbeatRecent".into(), "True/AgentReady".into())
    );
    assert!(well["conditions"][0]["lastTransitionTime"].is_string(), "{well:#}");
    drop(agent.leave(&server).await);
    let gone = health(&server, "n1").await;
    assert_eq!(
        (word(&gone, "Heartbeat"), word(&gone, "Ready")),
        ("False/HeartbeatStale".into(), "False/SessionEnded".into())
    );
    assert!(gone["conditions"][0]["message"].as_str().unwrap().contains("the agent closed it"), "{gone:#}");
    let missing = server.get("/api/v1/nodes/n9/health").await;
    assert_eq!((missing.status, missing.code().as_str()), (404, "unknown-node"));
    server.stop().await;
}

#[tokio::test]
async fn a_node_that_never_connects_is_flagged_after_a_while() {
    let server = Server::start_with(|config| config.pending_stale_after = std::time::Duration::from_millis(300)).await;
    let minted = server.post("/api/v1/nodes/join-tokens", &json!({})).await.json();
    let token: JoinToken = minted["token"].as_str().unwrap().parse().unwrap();
    let (_, csr) = cara_control::pki::new_request().unwrap();
    let tls = cara_transport::pinned(&server.env, &server.founded.ca_fingerprint, true);
    let channel = cara_transport::connect(&server.env, &server.address, tls, DEADLINE).await.unwrap();
    let request = EnrollRequest { token: token.secret, node_name: "n1".into(), csr, ..EnrollRequest::default() };
    AgentClient::new(channel).enroll(request).await.unwrap();
    let flagged = server.until("/api/v1/nodes/n1", |node| node["status"]["neverConnected"] == true).await;
    assert_eq!(flagged["status"]["connection"], "pending");
    let health = health(&server, "n1").await;
    assert!(health["conditions"][0]["message"].as_str().unwrap().contains("next:"), "{health:#}");
    server.stop().await;
}

#[tokio::test]
async fn old_agents_and_silent_ones_are_outdated_once_a_version_is_asked_for() {
    let server = Server::start_with(|config| config.agent_min_version = "0.2.0".parse().ok()).await;
    let says = |version: &str| Facts {
        agent_version: version.into(),
        agent_commit: "0123456789ab".into(),
        os_image: "Debian GNU/Linux 12 (bookworm)".into(),
        ..Facts::default()
    };
    let _old = Agent::join_with(&server, "old", |hello| hello.facts = Some(says("0.1.9"))).await;
    let _new = Agent::join_with(&server, "new", |hello| hello.facts = Some(says("0.2.0"))).await;
    let _mute = Agent::join(&server, "mute").await;
    for (node, outdated) in [("old", true), ("new", false), ("mute", true)] {
        let view = server.get(&format!("/api/v1/nodes/{node}")).await.json();
        assert_eq!(view["status"]["agent"]["outdated"], outdated, "{node}: {view:#}");
    }
    let agent = server.get("/api/v1/nodes/new").await.json()["status"]["agent"].clone();
    assert_eq!(
        (&agent["commit"], &agent["osImage"]),
        (&json!("0123456789ab"), &json!("Debian GNU/Linux 12 (bookworm)"))
    );
    server.stop().await;
}

#[tokio::test]
async fn a_region_is_said_and_the_network_is_seen() {
    let server = Server::start().await;
    let _agent = Agent::join(&server, "n1").await;
    let set = server.put("/api/v1/nodes/n1/region", &json!({ "region": "eu-west" })).await;
    assert_eq!((set.status, &set.json()["status"]["region"]), (200, &json!("eu-west")), "{}", set.body);
    let typo = server.put("/api/v1/nodes/n1/region", &json!({ "regoin": "eu" })).await;
    assert_eq!((typo.status, typo.code().as_str()), (400, "invalid-body"));
    let missing = server.put("/api/v1/nodes/n9/region", &json!({ "region": "eu" })).await;
    assert_eq!((missing.status, missing.code().as_str()), (404, "unknown-node"));
    let network = server.get("/api/v1/nodes/n1").await.json()["status"]["network"].clone();
    assert_eq!(network, json!({ "dnsName": "n1.lan", "mode": "Direct", "agentPort": 7444 }));
    server.stop().await;
}

#[tokio::test]
async fn a_list_is_cut_into_pages_by_name() {
    let server = Server::start().await;
    for name in ["web-2", "db-1", "web-1", "web-3"] {
        let manifest = json!({ "apiVersion": "caravanserai/v1", "kind": "Node", "metadata": { "name": name } });
        assert_eq!(server.post("/api/v1/nodes", &manifest).await.status, 201);
    }
    let names = async |query: &str| {
        let answer = server.get(&format!("/api/v1/nodes{query}")).await;
        let names = answer.json()["items"].as_array().unwrap().iter().map(|n| n["metadata"]["name"].clone()).collect();
        (Value::Array(names), answer.headers["cara-total"].to_str().unwrap().to_owned())
    };
    assert_eq!(names("").await, (json!(["db-1", "web-1", "web-2", "web-3"]), "4".into()));
    assert_eq!(names("?q=web&limit=2").await, (json!(["web-1", "web-2"]), "3".into()));
    assert_eq!(names("?q=web&limit=2&offset=2").await, (json!(["web-3"]), "3".into()));
    assert_eq!(names("?offset=9").await, (json!([]), "4".into()));
    assert_eq!(server.get("/api/v1/nodes?limit=0").await.status, 400);
    server.stop().await;
}
