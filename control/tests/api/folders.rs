//! Data folders and ports that aren't what they should be: refused, said why, nothing touched.

use std::sync::Arc;

use cara_control::error::chain;
use cara_control::setup::{self, Place};
use cara_env::Env;
use raft_store::memory::MemoryEngine;
use tokio::sync::watch;

use crate::harness::{Server, config, free_address};

fn place(address: &str) -> Place {
    Place::new("s1", address, address)
}

async fn run_error(folder: &std::path::Path, engine: Arc<MemoryEngine>) -> String {
    let (_stop, stopped) = watch::channel(false);
    chain(&cara_control::run(config(folder), Env::real(), engine, stopped).await.unwrap_err())
}

#[tokio::test]
async fn a_folder_is_set_up_once() {
    let (env, folder) = (Env::real(), tempfile::tempdir().unwrap());
    let missing = run_error(folder.path(), Arc::default()).await;
    assert!(missing.contains("cara-server init"), "{missing}");
    setup::init(&env, folder.path(), &place("127.0.0.1:7443")).unwrap();
    let before = std::fs::read(folder.path().join("server.json")).unwrap();
    let again = setup::init(&env, folder.path(), &place("127.0.0.1:7443")).unwrap_err().to_string();
    assert!(again.contains("belongs to server s1 already"), "{again}");
    assert_eq!(std::fs::read(folder.path().join("server.json")).unwrap(), before);
}

#[tokio::test]
async fn a_damaged_identity_is_not_guessed_at() {
    let (env, folder) = (Env::real(), tempfile::tempdir().unwrap());
    setup::init(&env, folder.path(), &place("127.0.0.1:7443")).unwrap();
    std::fs::write(folder.path().join("server.json"), "{\"server_id\": 1").unwrap();
    let error = run_error(folder.path(), Arc::default()).await;
    assert!(error.contains("server.json is damaged"), "{error}");
}

#[tokio::test]
async fn a_taken_port_is_named() {
    let (env, folder) = (Env::real(), tempfile::tempdir().unwrap());
    let taken = env.net.listen("127.0.0.1:0").await.unwrap();
    setup::init(&env, folder.path(), &place(&taken.local_address())).unwrap();
    let error = run_error(folder.path(), Arc::default()).await;
    assert!(error.contains(&taken.local_address()) && error.contains("another process has this port"), "{error}");
}

#[tokio::test]
async fn an_address_without_a_port_is_refused() {
    let (env, folder) = (Env::real(), tempfile::tempdir().unwrap());
    let error = setup::init(&env, folder.path(), &place("10.0.0.1")).unwrap_err().to_string();
    assert!(error.contains("host:port"), "{error}");
    let bad_name = Place { name: "S 1".into(), ..place("127.0.0.1:7443") };
    assert!(setup::init(&env, folder.path(), &bad_name).unwrap_err().to_string().contains("--name"));
}

#[tokio::test]
async fn a_server_whose_disk_was_lost_does_not_vote() {
    let server = Server::start().await;
    let env = server.env.clone();
    let folder = tempfile::tempdir().unwrap();
    let address = free_address(&env).await;
    setup::init(&env, folder.path(), &place(&address)).unwrap();
    let path = folder.path().join("server.json");
    let text = std::fs::read_to_string(&path).unwrap().replace("\"fresh\": true", "\"fresh\": false");
    std::fs::write(&path, text).unwrap();
    let error = run_error(folder.path(), Arc::default()).await;
    assert!(error.contains("its vote is lost"), "{error}");
    server.stop().await;
}
