//! How often one may ask.

use cara_control::config::Rate;
use hyper::body::Bytes;

use crate::harness::Server;

/// One request in a thousand seconds is as good as none: no test waits.
fn slow(burst: u32) -> Rate {
    Rate { per_second: 1, burst }
}

#[tokio::test]
async fn a_token_that_asks_too_often_is_told_when_to_come_back() {
    let server = Server::start_with(|config| config.rate_per_token = slow(40)).await;
    let mut refused = None;
    for _ in 0..60 {
        let answer = server.get("/api/v1/nodes?consistency=stale").await;
        if answer.status != 200 {
            refused = Some(answer);
            break;
        }
    }
    let refused = refused.expect("forty at once and one a second are less than sixty");
    assert_eq!((refused.status, refused.code().as_str()), (429, "rate-limited"), "{}", refused.body);
    assert!(refused.headers["retry-after"].to_str().unwrap().parse::<u64>().unwrap() >= 1);
    assert_eq!(refused.json()["retryable"], true);
    let live = server.send("GET", "/livez", &[], Bytes::new()).await.unwrap();
    assert_eq!(live.status, 200, "who watches the server is no flood");
    let stranger = server.send("GET", "/api/v1/nodes", &[], Bytes::new()).await.unwrap();
    assert_eq!(stranger.status, 401, "those without a token are counted apart");
    server.stop().await;
}

#[tokio::test]
async fn guessing_tokens_is_counted_by_address_and_seen_in_the_metrics() {
    let server = Server::start_with(|config| config.rate_per_address = slow(5)).await;
    let mut last = 0;
    for n in 0..20 {
        let guess = [("authorization", format!("Bearer cara_{n}"))];
        last = server.send("GET", "/api/v1/nodes", &guess, Bytes::new()).await.unwrap().status;
    }
    assert_eq!(last, 429);
    let metrics = server.get("/metrics").await;
    assert_eq!(metrics.status, 200, "who has a token is not hit by it");
    assert!(metrics.body.contains("cara_refused_total{reason=\"address\"}"), "{}", metrics.body);
    server.stop().await;
}
