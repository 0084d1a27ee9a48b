//! A root token for an operator who has none left.

use cara_control::recover::{RecoverError, recover_token};
use serde_json::Value;

use cara_core::FEATURE_LEVEL;

use crate::harness::Server;

#[tokio::test]
async fn whoever_has_a_servers_folder_gets_a_root_token_that_is_audited() {
    let first = Server::start().await;
    let second = first.join("s2", FEATURE_LEVEL).await.unwrap();
    // Through the one that leads and through the other one.
    for (server, name, actor) in [(&first, "s1", "server:1"), (&second, "s2", "server:2")] {
        let made = recover_token(&server.env, server.data_dir(), None).await.unwrap();
        assert_eq!(
            (made.name.as_str(), made.ca_fingerprint.as_str()),
            (&*format!("recovered on {name}"), &*first.founded.ca_fingerprint)
        );
        let tokens = first.as_token(&made.token, "GET", "/api/v1/tokens", &Value::Null).await;
        assert_eq!(tokens.status, 200, "it is a root token: {}", tokens.body);
        let audit = first.get(&format!("/api/v1/audit-log?subject={}", made.token_id)).await.json();
        let record = &audit["items"][0];
        assert_eq!((&record["actor"], &record["actorName"]), (&Value::from(actor), &Value::from(name)), "{record}");
    }
    second.stop().await;
    first.stop().await;
}

#[tokio::test]
async fn without_a_running_server_it_says_what_to_do() {
    let server = Server::start().await;
    let elsewhere = tempfile::tempdir().unwrap();
    let error = recover_token(&server.env, elsewhere.path(), None).await.unwrap_err();
    assert!(matches!(error, RecoverError::Identity(_)), "{error}");
    let nobody = crate::harness::free_address(&server.env).await;
    let error = recover_token(&server.env, server.data_dir(), Some(nobody)).await.unwrap_err();
    assert!(error.to_string().contains("start it with cara-server run"), "{error}");
    server.stop().await;
}

#[tokio::test]
async fn without_a_leader_it_says_so() {
    let first = Server::start().await;
    let second = first.join("s2", FEATURE_LEVEL).await.unwrap();
    first.stop().await;
    let error = recover_token(&second.env, second.data_dir(), None).await.unwrap_err();
    let text = error.to_string();
    assert!(text.contains("no token was made") && text.contains("start the servers that are down"), "{text}");
    second.stop().await;
}
