//! What the Docker runtime says when no engine answers as it should. Needs no engine.

use std::time::Duration;

use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::UnixListener;

use super::docker::DockerRuntime;
use super::{ContainerRuntime, RuntimeError};
use crate::testing::ManualClock;

/// A socket that does `answer` with each connection.
async fn fake_engine(folder: &tempfile::TempDir, answer: &'static [u8]) -> DockerRuntime {
    let path = folder.path().join("docker.sock");
    let listener = UnixListener::bind(&path).expect("a socket");
    drop(cara_env::spawn(async move {
        let mut open = Vec::new();
        while let Ok((mut stream, _)) = listener.accept().await {
            let mut request = [0; 1024];
            let _ = stream.read(&mut request).await;
            let _ = stream.write_all(answer).await;
            open.push(stream);
        }
    }));
    DockerRuntime::new(ManualClock::hurried(), &format!("unix://{}", path.display()))
}

#[tokio::test]
async fn a_missing_socket_is_named() {
    let runtime = DockerRuntime::new(ManualClock::hurried(), "unix:///nowhere/docker.sock");
    let error = runtime.info().await.expect_err("nothing is there");
    assert!(matches!(error, RuntimeError::Away { .. }), "{error:?}");
    assert_eq!(error.reason(), "EngineAway");
    assert!(error.to_string().contains("unix:///nowhere/docker.sock is not reachable"), "{error}");
}

#[tokio::test]
async fn an_engine_that_accepts_and_never_answers_meets_the_deadline() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = fake_engine(&folder, b"").await;
    let error = runtime.list(&crate::labels::Labels::new()).await.expect_err("it is silent");
    let path = folder.path().join("docker.sock");
    let expected = format!("docker engine at unix://{} did not answer within 10 s", path.display());
    assert!(error.to_string().starts_with(&expected), "{error}");
}

#[tokio::test]
async fn an_answer_that_stops_in_the_middle_meets_the_deadline() {
    let folder = tempfile::tempdir().expect("a folder");
    let half = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 400\r\n\r\n{\"ApiVersion\":";
    let runtime = fake_engine(&folder, half).await;
    let error = runtime.stop("c", Duration::from_secs(1)).await.expect_err("half an answer");
    assert!(matches!(error, RuntimeError::Deadline { .. }), "{error:?}");
}

#[tokio::test]
async fn something_that_is_no_engine_is_an_error() {
    let folder = tempfile::tempdir().expect("a folder");
    let runtime = fake_engine(&folder, b"220 mail ready\r\n").await;
    assert!(runtime.info().await.is_err());
}
