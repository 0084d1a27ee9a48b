//! Secrets that were planted are looked for in everything that is logged, printed for developers, or told in errors.

use std::io::Write;
use std::sync::{Arc, Mutex, PoisonError};

use cara_control::identity::from_hex;
use cara_control::pki::unseal;
use cara_core::Command;
use cara_core::codec;
use cara_core::command::{ApplyWorkload, InitCluster, PutApiToken};
use cara_core::model::{ServiceSpec, WorkloadSpec};
use cara_proto::{agent, cluster, rest, workload};
use cara_transport::JoinToken;
use serde_json::{Value, json};

use cara_core::FEATURE_LEVEL;

use crate::agent::Agent;
use crate::databases::database;
use crate::harness::{Answer, Server, app};

/// Everything that is logged in this process.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Log {
    fn text(&self) -> String {
        String::from_utf8_lossy(&self.0.lock().unwrap_or_else(PoisonError::into_inner)).into_owned()
    }
}

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Secrets with what they are.
struct Planted(Vec<(&'static str, String)>);

impl Planted {
    /// Names what is found in the text, with what stands before it.
    fn found_in(&self, text: &str) -> Vec<String> {
        let found = self.0.iter().filter_map(|(what, secret)| {
            let at = text.find(secret.as_str())?;
            let from = text[..at].char_indices().rev().nth(200).map_or(0, |(from, _)| from);
            Some(format!("{what} after ...{}", &text[from..at]))
        });
        found.collect()
    }
}

/// The secrets in a server's folder, and the CA's key, which only they open.
fn of_the_folder(server: &Server) -> Vec<(&'static str, String)> {
    let text = |key: &str| server.identity[key].as_str().map(str::to_owned);
    let key_line = |pem: &str| pem.lines().nth(1).unwrap().to_owned();
    let sealing_key = text("sealing_key").unwrap();
    let mut secrets = vec![("a server's private key", key_line(&text("key_pem").unwrap()))];
    // The first server's first entry has the CA's key in it.
    if let Some(entry) = text("bootstrap").and_then(|hex| from_hex(&hex)) {
        let Command::InitCluster(made) = codec::decode_entry(&entry).unwrap().command else { panic!("another entry") };
        let opened = from_hex(&sealing_key).unwrap().try_into().unwrap();
        let ca_key = String::from_utf8(unseal(&opened, &made.ca_key_sealed).unwrap()).unwrap();
        secrets.push(("the CA's private key", key_line(&ca_key)));
    }
    secrets.push(("the sealing key", sealing_key));
    secrets
}

#[tokio::test]
async fn no_log_and_no_error_tells_a_secret() {
    let log = Log::default();
    let writer = log.clone();
    let all = tracing_subscriber::fmt().with_max_level(tracing::Level::TRACE).with_ansi(false);
    tracing::subscriber::set_global_default(all.with_writer(move || writer.clone()).finish()).unwrap();

    let first = Server::start().await;
    // While nobody else could lead.
    let agent = Agent::join(&first, "a").await;
    let second = first.join("s2", FEATURE_LEVEL).await.unwrap();
    let mut planted = of_the_folder(&first);
    planted.extend(of_the_folder(&second));
    planted.push(("the root token", first.founded.token.clone()));
    let (token, _) = second.token(&json!({ "name": "ci", "ability": "write" })).await;
    planted.push(("an API token", token.clone()));
    // The next sealing key, from its birth until it lies in both folders.
    assert_eq!(first.post("/api/v1/cluster/sealing-key/rotate", &json!({})).await.status, 202);
    first.until("/api/v1/cluster/sealing-key", |view| view["phase"] == "stable").await;
    let saved: Value = serde_json::from_slice(&std::fs::read(second.data_dir().join("server.json")).unwrap()).unwrap();
    let further = saved["further_sealing_keys"].as_array().cloned().unwrap_or_default();
    for key in further.iter().chain([&saved["sealing_key"]]) {
        planted.push(("a sealing key", key.as_str().unwrap().to_owned()));
    }
    let minted = second.post("/api/v1/nodes/join-tokens", &json!({})).await.json();
    let join: JoinToken = minted["token"].as_str().unwrap().parse().unwrap();
    planted.extend([("a join token", join.to_string()), ("a join token's secret", join.secret)]);
    let recovered = cara_control::recover::recover_token(&second.env, second.data_dir(), None).await.unwrap();
    planted.push(("a recovered token", recovered.token));

    let mut web = app("web");
    web["spec"]["env"] = json!([{ "name": "PASSWORD", "value": "planted-in-an-environment" }]);
    let mut errors: Vec<Answer> = Vec::new();
    for server in [&first, &second] {
        errors.push(server.as_token(&token, "POST", "/api/v1/apps", &web).await);
        let mut wrong = web.clone();
        wrong["spec"]["ports"] = json!([{ "container": 70_000 }]);
        errors.push(server.as_token(&token, "POST", "/api/v1/apps", &wrong).await);
        wrong["spec"] = json!({ "env": "planted-in-an-environment" });
        server.as_token(&token, "POST", "/api/v1/apps", &wrong).await; // Quotes what it can't read, to whoever sent it.
        errors.push(server.as_token(&token, "GET", "/api/v1/tokens", &Value::Null).await);
        errors.push(server.as_token(&format!("{token}x"), "GET", "/api/v1/apps", &Value::Null).await);
        errors.push(server.as_token(&token, "PUT", "/api/v1/apps/other", &web).await);
    }
    planted.push(("an environment's value", "planted-in-an-environment".into()));
    assert_eq!(second.post("/api/v1/databases", &database("shop")).await.status, 201);
    first.until("/api/v1/databases/shop", |shop| shop["status"]["placement"].is_object()).await;
    let url = first.get("/api/v1/databases/shop/connection").await.json()["url"].as_str().unwrap().to_owned();
    let password = url.split(['@', '/', ':']).find(|part| part.len() == 32).unwrap().to_owned();
    planted.push(("a database's password", password));

    let planted = Planted(planted);
    // The first application was carried out and shows the manifest to whoever sent it.
    for answer in errors.iter().filter(|answer| answer.status >= 400) {
        assert_eq!(planted.found_in(&answer.body), Vec::<String>::new(), "{answer:?}");
    }
    let logged = log.text();
    assert!(logged.contains("TRACE") && logged.contains("leading"), "the log has everything in it");
    assert_eq!(planted.found_in(&logged), Vec::<String>::new());
    drop(agent);
    second.stop().await;
    first.stop().await;
}

#[test]
fn nothing_that_holds_a_secret_prints_it() {
    let secret = "planted-secret";
    let hidden: String = secret.bytes().map(|byte| format!("{byte}, ")).collect();
    let env = || workload::EnvVar { name: "A".into(), value: secret.into() };
    let service = ServiceSpec { env: [("A".to_owned(), secret.to_owned())].into(), ..ServiceSpec::default() };
    let spec = WorkloadSpec { services: vec![service], ..WorkloadSpec::default() };
    let header = || cluster::Header { name: "authorization".into(), value: secret.into() };
    let carried = cluster::HttpRequest {
        path: format!("/x?{secret}"),
        headers: vec![header()],
        body: secret.into(),
        ..Default::default()
    };
    let seen: Vec<String> = vec![
        format!("{:?}", Command::from(ApplyWorkload { spec, ..ApplyWorkload::default() })),
        format!("{:?}", Command::from(InitCluster::default())),
        format!("{:?}", Command::from(PutApiToken::default())),
        format!("{:?}", env()),
        format!("{:?}", workload::Service { env: vec![env()], ..Default::default() }),
        format!("{:?}", agent::EnrollRequest { token: secret.into(), ..Default::default() }),
        format!("{:?}", cluster::JoinRequest { token: secret.into(), ..Default::default() }),
        format!("{:?}", cluster::JoinResponse { sealing_key: secret.into(), ..Default::default() }),
        format!("{:?}", cluster::JoinResponse { next_sealing_key: secret.into(), ..Default::default() }),
        format!("{:?}", cluster::PullSealingKeyResponse { key: secret.into() }),
        format!("{:?}", cluster::RecoverTokenResponse { token: secret.into(), ..Default::default() }),
        format!("{carried:?}"),
        format!("{:?}", cluster::HttpPart { data: secret.into(), headers: vec![header()], ..Default::default() }),
        format!("{:?}", rest::EnvVar { name: "A".into(), value: secret.into() }),
        format!(
            "{:?}",
            rest::MintedToken {
                token: secret.into(),
                join_commands: rest::JoinCommands { binary: secret.into(), docker: secret.into() },
                ..Default::default()
            }
        ),
        format!("{:?}", rest::MintedApiToken { token: secret.into(), ..Default::default() }),
        format!("{:?}", rest::DatabaseConnection { url: secret.into() }),
        format!("{:?}", JoinToken { secret: secret.into(), servers: vec![], ca_fingerprint: String::new() }),
    ];
    for text in seen {
        assert!(!text.contains(secret) && !text.contains(hidden.trim_end_matches(", ")), "{text}");
    }
}
