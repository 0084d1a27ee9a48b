//! What a server doesn't put up with: silence, crowds, and heads without end. The clock stands until everybody waits, so that
//! ten seconds cost nothing and are exactly ten seconds.

#![allow(clippy::unwrap_used)] // Helpers of tests live outside of test functions here.

mod world;

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use cara_transport::{Limits, Refusal};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use world::{World, ask, ask_h2};

const HEADER: (&str, &str) = ("x-nothing", "1");
/// Less than a deadline of ten seconds, and more.
const NOT_YET: Duration = Duration::from_secs(9);
const BY_THEN: Duration = Duration::from_secs(2);

#[tokio::test(start_paused = true)]
async fn a_client_that_never_begins_tls_is_dropped_after_the_deadline() {
    let world = World::with(Limits::default());
    let mut silent = world.connect("10.0.0.7:1");
    world.pass(NOT_YET).await;
    assert_eq!(world.refused(), []);
    world.pass(BY_THEN).await;
    assert_eq!(world.refused(), [Refusal::HandshakeLate]);
    assert_eq!(silent.read(&mut [0; 8]).await.unwrap(), 0, "closed");
}

#[tokio::test(start_paused = true)]
async fn what_is_no_tls_is_refused_at_once() {
    let world = World::with(Limits::default());
    let mut plain = world.connect("10.0.0.7:1");
    plain.write_all(b"GET / HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
    world.pass(Duration::from_millis(1)).await;
    assert_eq!(world.refused(), [Refusal::Handshake]);
}

#[tokio::test(start_paused = true)]
async fn a_stranger_that_asks_for_nothing_is_dropped_after_the_deadline() {
    let world = World::with(Limits::default());
    let mut h1 = world.stranger("10.0.0.7:1", false).await.unwrap();
    let mut slow = world.stranger("10.0.0.7:2", false).await.unwrap();
    let mut h2 = world.stranger("10.0.0.7:3", true).await.unwrap();
    slow.write_all(b"GET / HT").await.unwrap();
    world.pass(NOT_YET).await;
    assert_eq!(world.refused(), []);
    world.pass(BY_THEN).await;
    for stream in [&mut h1, &mut slow, &mut h2] {
        let mut rest = Vec::new();
        drop(stream.read_to_end(&mut rest).await); // What HTTP/2 said first, if anything; then the end.
    }
}

#[tokio::test(start_paused = true)]
async fn a_machine_with_a_certificate_may_be_silent() {
    let world = World::with(Limits::default());
    let machine = world.node("10.0.0.8:1").await.unwrap();
    world.pass(Duration::from_secs(60)).await;
    assert_eq!(world.refused(), []);
    assert_eq!(ask_h2(machine, HEADER).await.unwrap(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_crowd_from_one_address_leaves_room_for_others() {
    let world = World::with(Limits { connections_per_address_max: 3, ..Limits::default() });
    let mut crowd = Vec::new();
    for port in 1..=3 {
        crowd.push(world.stranger(&format!("10.0.0.7:{port}"), false).await.unwrap());
    }
    assert!(world.stranger("10.0.0.7:4", false).await.is_err());
    assert_eq!(world.refused(), [Refusal::AddressFull]);
    let other = world.stranger("10.0.0.9:1", false).await.unwrap();
    assert_eq!(ask(other, HEADER).await.unwrap(), 200);
    drop(crowd.pop());
    world.pass(Duration::from_millis(1)).await;
    let next = world.stranger("10.0.0.7:5", false).await.unwrap();
    assert_eq!(ask(next, HEADER).await.unwrap(), 200);
}

#[tokio::test(start_paused = true)]
async fn machines_behind_one_address_are_no_crowd() {
    let world = World::with(Limits { connections_per_address_max: 3, ..Limits::default() });
    let mut machines = Vec::new();
    for port in 1..=10 {
        machines.push(world.node(&format!("10.0.0.7:{port}")).await.unwrap());
        world.pass(Duration::from_millis(1)).await; // Its certificate is read after the client's last word.
    }
    assert_eq!(world.refused(), []);
    for machine in machines {
        assert_eq!(ask_h2(machine, HEADER).await.unwrap(), 200);
    }
}

#[tokio::test(start_paused = true)]
async fn who_wants_the_leader_only_is_told_at_the_first_word_that_another_leads() {
    let elsewhere = Arc::new(AtomicBool::new(true));
    let asked = elsewhere.clone();
    let another_leads = Arc::new(move || asked.load(Ordering::Relaxed));
    let world = World::with(Limits { another_leads, ..Limits::default() });
    let error = world.node_for_leader("10.0.0.7:1").await.map(drop).unwrap_err();
    let said = error.get_ref().and_then(|error| error.downcast_ref()).expect("TLS said it");
    assert!(matches!(said, rustls::Error::AlertReceived(rustls::AlertDescription::NoApplicationProtocol)), "{said}");
    assert_eq!(world.refused(), [Refusal::NotLeading]);
    let anybody = world.node("10.0.0.7:2").await.unwrap();
    assert_eq!(ask_h2(anybody, HEADER).await.unwrap(), 200);
    elsewhere.store(false, Ordering::Relaxed);
    let leader = world.node_for_leader("10.0.0.7:3").await.unwrap();
    assert_eq!(ask_h2(leader, HEADER).await.unwrap(), 200);
}

#[tokio::test(start_paused = true)]
async fn a_head_without_end_is_refused_over_both_protocols() {
    let world = World::with(Limits::default());
    let long = "x".repeat(40 << 10);
    let h1 = world.stranger("10.0.0.7:1", false).await.unwrap();
    assert_eq!(ask(h1, ("x-long", &long)).await.unwrap(), 431);
    let h2 = world.stranger("10.0.0.7:2", true).await.unwrap();
    assert_ne!(ask_h2(h2, ("x-long", &long)).await.ok(), Some(200));
    let usual = world.stranger("10.0.0.7:3", true).await.unwrap();
    assert_eq!(ask_h2(usual, ("x-long", &"x".repeat(8 << 10))).await.unwrap(), 200);
}
