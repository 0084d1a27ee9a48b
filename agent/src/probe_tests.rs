//! Probes against real sockets, and which containers are asked.

use super::*;
use crate::runtime::memory::MemoryRuntime;

fn probe() -> EngineProbe {
    let env = Env::real();
    EngineProbe { runtime: Arc::new(MemoryRuntime::new(env.clock.clone())), env }
}

/// A socket that answers one request with this text; what it was asked comes back.
async fn answering(text: &'static str) -> (String, Task<Vec<u8>>) {
    let listener = Env::real().net.listen("127.0.0.1:0").await.expect("a port");
    let address = listener.local_address();
    let task = cara_env::spawn(async move {
        let (mut stream, _) = listener.accept().await.expect("a connection");
        let mut asked = Vec::new();
        while !asked.ends_with(b"\r\n\r\n") {
            assert!(stream.read_buf(&mut asked).await.expect("read") > 0, "the request is whole");
        }
        stream.write_all(text.as_bytes()).await.expect("written");
        asked
    });
    (address, task)
}

#[tokio::test]
async fn a_status_below_400_is_a_good_answer() {
    let (address, asked) = answering("HTTP/1.1 204 No Content\r\n\r\n").await;
    probe().get(&address, "/health").await.expect("well");
    let asked = asked.await.expect("not aborted");
    assert!(asked.starts_with(b"GET /health HTTP/1.1\r\n"), "{}", String::from_utf8_lossy(&asked));
}

#[tokio::test]
async fn an_error_status_and_what_is_no_http_are_bad_answers() {
    let (address, _) = answering("HTTP/1.1 503 Service Unavailable\r\n\r\n").await;
    assert!(probe().get(&address, "").await.expect_err("bad").ends_with("answered with status 503"));
    let (address, _) = answering("220 ready\r\n").await;
    assert!(probe().get(&address, "").await.expect_err("bad").ends_with("speaks no HTTP"));
}

#[tokio::test]
async fn a_port_that_accepts_is_a_good_answer_and_a_closed_one_a_bad_one() {
    let listener = Env::real().net.listen("127.0.0.1:0").await.expect("a port");
    let address = listener.local_address();
    probe().dial(&address).await.map(drop).expect("well");
    drop(listener);
    let error = probe().dial(&address).await.map(drop).expect_err("bad");
    assert!(error.starts_with(&format!("can't connect to {address}")), "{error}");
}
