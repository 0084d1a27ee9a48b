//! A machine's first contact: what it gets, and what costs a token.

use cara_control::setup::{self, Place};
use cara_proto::agent::agent_client::AgentClient;
use cara_proto::agent::{EnrollRequest, EnrollResponse};
use cara_transport::JoinToken;
use serde_json::json;

use crate::harness::{DEADLINE, Server, free_address};

async fn enrol(server: &Server, request: EnrollRequest) -> Result<EnrollResponse, (String, String)> {
    let tls = cara_transport::pinned(&server.env, &server.founded.ca_fingerprint, true);
    let channel = cara_transport::connect(&server.env, &server.address, tls, DEADLINE).await.unwrap();
    let answer = AgentClient::new(channel).enroll(request).await;
    answer.map(tonic::Response::into_inner).map_err(|status| {
        let code = status.metadata().get(cara_proto::CODE_KEY).map(|v| v.to_str().unwrap().to_owned());
        (code.unwrap_or_default(), status.message().to_owned())
    })
}

fn request(secret: &str, name: &str, csr: &[u8]) -> EnrollRequest {
    EnrollRequest { token: secret.into(), node_name: name.into(), csr: csr.to_vec(), ..EnrollRequest::default() }
}

async fn mint(server: &Server) -> String {
    let minted = server.post("/api/v1/nodes/join-tokens", &json!({})).await.json();
    minted["token"].as_str().unwrap().parse::<JoinToken>().unwrap().secret
}

async fn token_states(server: &Server) -> Vec<String> {
    let list = server.get("/api/v1/nodes/join-tokens").await.json();
    list["items"].as_array().unwrap().iter().map(|t| t["state"].as_str().unwrap().to_owned()).collect()
}

#[tokio::test]
async fn a_token_lets_in_one_key_and_answers_it_alike_each_time() {
    let server = Server::start().await;
    let secret = mint(&server).await;
    let (_, csr) = cara_control::pki::new_request().unwrap();
    let (_, other) = cara_control::pki::new_request().unwrap();

    let preflight = EnrollRequest { preflight: true, ..request(&secret, "n1", &csr) };
    enrol(&server, preflight).await.unwrap();
    assert_eq!(token_states(&server).await, ["unused"], "a preflight spends nothing");

    let first = enrol(&server, request(&secret, "n1", &csr)).await.unwrap();
    let again = enrol(&server, request(&secret, "n1", &csr)).await.unwrap();
    assert_eq!(first, again, "the answer was lost, the machine asks again");
    assert_eq!(token_states(&server).await, ["used"]);
    let spent = enrol(&server, request(&secret, "n2", &other)).await.unwrap_err();
    assert_eq!(spent.0, "join-token-spent");
    server.stop().await;
}

#[tokio::test]
async fn what_is_refused_spends_nothing() {
    let server = Server::start().await;
    let secret = mint(&server).await;
    let (_, csr) = cara_control::pki::new_request().unwrap();
    let refusals = [
        (request("wrong", "n1", &csr), "join-token-unknown"),
        (request(&secret, "Rack7_N2", &csr), "invalid-field"),
        (EnrollRequest { preflight: true, ..request(&secret, "Rack7_N2", &csr) }, "invalid-field"),
        (request(&secret, "n1", b"rubbish"), "invalid-request"),
    ];
    for (request, code) in refusals {
        assert_eq!(enrol(&server, request).await.unwrap_err().0, code);
    }
    assert_eq!(token_states(&server).await, ["unused"]);
    assert!(enrol(&server, request(&secret, "n1", &csr)).await.is_ok(), "the token is as good as new");
    server.stop().await;
}

#[tokio::test]
async fn a_node_that_was_described_before_keeps_its_labels() {
    let server = Server::start().await;
    let manifest = json!({
        "apiVersion": "caravanserai/v1", "kind": "Node",
        "metadata": { "name": "n1", "labels": { "site": "hall-b" } },
    });
    let described = server.post("/api/v1/nodes", &manifest).await.json();
    let secret = mint(&server).await;
    let (_, csr) = cara_control::pki::new_request().unwrap();
    let enrolled = enrol(&server, request(&secret, "n1", &csr)).await.unwrap();
    assert_eq!(enrolled.node_id, described["metadata"]["uid"]);
    let node = server.get("/api/v1/nodes/n1").await.json();
    assert_eq!(node["metadata"]["labels"], json!({ "site": "hall-b" }));
    assert_eq!(node["status"]["certificate"]["state"], "ok");
    server.stop().await;
}

#[tokio::test]
async fn a_server_that_nobody_can_dial_is_refused_and_the_token_stays_good() {
    let server = Server::start().await;
    let minted = server.post("/api/v1/servers/join-tokens", &json!({})).await.json();
    let token: JoinToken = minted["token"].as_str().unwrap().parse().unwrap();
    let folder = tempfile::tempdir().unwrap();
    let listen = free_address(&server.env).await;
    // A port on which nobody listens.
    let nowhere = free_address(&server.env).await;
    let place = Place::new("s2", &listen, &nowhere);
    let error = setup::join(&server.env, folder.path(), &place, &token).await.unwrap_err().to_string();
    assert!(error.contains(&nowhere) && error.contains("unspent"), "{error}");
    let states = server.get("/api/v1/servers/join-tokens").await.json();
    assert_eq!(states["items"][0]["state"], "unused");

    let place = Place::new("s2", &listen, &listen);
    setup::join(&server.env, folder.path(), &place, &token).await.unwrap();
    assert!(folder.path().join("server.json").exists());
    server.stop().await;
}

#[tokio::test]
async fn a_preflight_tries_name_token_and_address_and_tells_the_time() {
    let server = Server::start().await;
    let _taken = crate::agent::Agent::join(&server, "taken").await;
    let secret = mint(&server).await;
    let (_, csr) = cara_control::pki::new_request().unwrap();
    let ask = |name: &str, address: &str| EnrollRequest {
        preflight: true,
        volume_address: address.into(),
        ..request(&secret, name, &csr)
    };
    let nowhere = free_address(&server.env).await;
    for (request, code) in [
        (ask("taken", ""), "node-name-taken"),
        (ask("n1", &nowhere), "address-unreachable"),
        (EnrollRequest { token: "wrong".into(), ..ask("n1", "") }, "join-token-unknown"),
    ] {
        assert_eq!(enrol(&server, request).await.unwrap_err().0, code);
    }
    let answer = enrol(&server, ask("n1", &server.address)).await.unwrap();
    assert!(answer.not_before_ms < answer.server_time_ms && answer.server_time_ms < answer.not_after_ms, "{answer:?}");
    assert!(answer.certificate_pem.is_empty(), "it lets nobody in");
    assert!(token_states(&server).await.contains(&"unused".to_owned()), "nothing is spent");
    server.stop().await;
}
