//! Slow, narrow and clogged links, resets, and the shapes that cuts can make.

use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cara_env::IoStream;
use cara_netsim::{Boot, Settings, Spread, World, trace};
use tokio::io::{AsyncReadExt, AsyncWriteExt};

use crate::ping::{self, Answers};

/// What one end saw: numbers are milliseconds at which they were sent, each with when it came.
#[derive(Debug, Default)]
struct Log {
    got: Mutex<Vec<(u64, u64)>>,
    errors: Mutex<Vec<(String, u64)>>,
    accepted: Mutex<Vec<u64>>,
}

impl Log {
    fn got(&self) -> Vec<(u64, u64)> {
        std::mem::take(&mut *self.got.lock().unwrap())
    }

    fn delays(&self) -> Vec<u64> {
        self.got().iter().map(|(sent, got)| got - sent).collect()
    }
}

fn ms(clock: &dyn cara_env::Clock) -> u64 {
    clock.monotonic().as_millis() as u64
}

/// Writes the time every ten milliseconds.
async fn tick(env: cara_env::Env, mut stream: tokio::io::WriteHalf<IoStream>, log: Arc<Log>) {
    loop {
        if let Err(error) = stream.write_u64(ms(&*env.clock)).await {
            log.errors.lock().unwrap().push((format!("write {:?}", error.kind()), ms(&*env.clock)));
            return;
        }
        env.clock.sleep(Duration::from_millis(10)).await;
    }
}

async fn listen(env: cara_env::Env, mut stream: tokio::io::ReadHalf<IoStream>, log: Arc<Log>) {
    loop {
        match stream.read_u64().await {
            Ok(sent) => log.got.lock().unwrap().push((sent, ms(&*env.clock))),
            Err(error) => {
                log.errors.lock().unwrap().push((format!("read {:?}", error.kind()), ms(&*env.clock)));
                return;
            }
        }
    }
}

fn talk(boot: &Boot, stream: IoStream, log: &Arc<Log>) {
    let (read, write) = tokio::io::split(stream);
    drop(cara_env::spawn(tick(boot.env.clone(), write, log.clone())));
    drop(cara_env::spawn(listen(boot.env.clone(), read, log.clone())));
}

async fn server(boot: Boot, log: Arc<Log>) -> Result<(), String> {
    let listener = boot.env.net.listen("b:7000").await.map_err(|e| e.to_string())?;
    loop {
        let (stream, _) = listener.accept().await.map_err(|e| e.to_string())?;
        log.accepted.lock().unwrap().push(ms(&*boot.env.clock));
        talk(&boot, stream, &log);
    }
}

async fn client(boot: Boot, log: Arc<Log>) -> Result<(), String> {
    let stream = boot.env.net.connect("b:7000").await.map_err(|e| e.to_string())?;
    talk(&boot, stream, &log);
    std::future::pending().await
}

/// `a` and `b` tell each other the time on one connection.
struct Pair {
    world: World,
    /// What `a` got from `b`.
    a: Arc<Log>,
    b: Arc<Log>,
}

fn pair(settings: &Settings) -> Pair {
    let (a, b) = (Arc::new(Log::default()), Arc::new(Log::default()));
    let mut world = World::with_settings(3, settings);
    let inside = b.clone();
    world.host("b", None, move |boot| server(boot, inside.clone()));
    let inside = a.clone();
    world.host("a", None, move |boot| client(boot, inside.clone()));
    let mut pair = Pair { world, a, b };
    pair.run_for(200);
    assert!(!pair.a.got().is_empty() && !pair.b.got().is_empty());
    pair
}

impl Pair {
    fn run_for(&mut self, ms: u64) {
        let until = self.world.now() + Duration::from_millis(ms);
        self.world.run_until(until, |_| false).unwrap();
    }
}

fn sorted(log: &[(u64, u64)]) -> bool {
    log.windows(2).all(|two| two[0].0 < two[1].0 && two[0].1 <= two[1].1)
}

#[test]
fn a_slow_link_is_slow_in_one_direction_and_keeps_the_order() {
    let mut pair = pair(&Settings::default());
    let slow = Spread::uniform_ms(300, 500);
    pair.world.slow_link("a", "b", slow, true);
    pair.run_for(100); // What was under way before.
    pair.b.got();
    pair.run_for(2_000);
    let got = pair.b.got();
    assert!(got.len() > 100 && sorted(&got), "{got:?}");
    assert!(got.iter().all(|(sent, got)| (300..=512).contains(&(got - sent))), "{got:?}");
    assert!(pair.a.delays().iter().all(|delay| *delay < 30), "the way back is as fast as ever");
    pair.world.slow_link("a", "b", slow, false);
    pair.run_for(50);
    pair.b.got();
    pair.run_for(500);
    assert!(pair.b.delays().iter().all(|delay| *delay < 30));
}

#[test]
fn a_slow_handshake_takes_both_directions() {
    let connected = |forth: u64, back: u64| {
        let at = Arc::new(Mutex::new(0));
        let mut world = World::new(4);
        world.host("b", None, |boot| server(boot, Arc::default()));
        let inside = at.clone();
        world.host("a", None, move |boot| {
            let at = inside.clone();
            async move {
                let _stream = boot.env.net.connect("b:7000").await.map_err(|e| e.to_string())?;
                *at.lock().unwrap() = ms(&*boot.env.clock);
                std::future::pending().await
            }
        });
        world.slow_link("a", "b", Spread::uniform_ms(forth, forth), true);
        world.slow_link("b", "a", Spread::uniform_ms(back, back), true);
        world.run_until(Duration::from_secs(3), |_| false).unwrap();
        *at.lock().unwrap()
    };
    assert!((1..60).contains(&connected(0, 0)));
    assert!((1_000..1_060).contains(&connected(1_000, 0)));
    assert!((1_500..1_560).contains(&connected(1_000, 500)));
}

#[test]
fn a_narrow_link_falls_behind_and_its_backlog_comes_when_it_is_wide_again() {
    let mut pair = pair(&Settings::default());
    pair.world.limit_link("a", "b", 400, true); // Half of the 800 bytes a second that a sends.
    pair.run_for(2_000);
    let got = pair.b.got();
    assert!(sorted(&got));
    assert!((95..=130).contains(&got.len()), "half of 200 came: {}", got.len());
    let (sent, came) = got.last().unwrap();
    assert!((800..=1_100).contains(&(came - sent)), "the last one waited a second: {sent} {came}");
    pair.world.limit_link("a", "b", 400, false);
    pair.run_for(30);
    let backlog = pair.b.got();
    assert!(backlog.len() >= 80 && sorted(&backlog), "{backlog:?}");
}

#[test]
fn a_clogged_link_holds_one_direction_back_and_then_gives_all_of_it_in_order() {
    let mut pair = pair(&Settings::default());
    pair.world.clog("a", "b", true);
    pair.world.clog("a", "b", true);
    pair.b.got();
    pair.run_for(1_000);
    assert!(pair.b.got().is_empty(), "not even what was under way");
    assert!(pair.a.got().len() > 90, "the way back is open");
    pair.world.clog("a", "b", false);
    pair.run_for(500);
    assert!(pair.b.got().is_empty(), "the other clog is left");
    pair.world.clog("a", "b", false);
    pair.run_for(5);
    let got = pair.b.got();
    assert!(got.len() > 140 && sorted(&got), "{got:?}");
    assert!(pair.b.errors.lock().unwrap().is_empty(), "the connection has survived");
}

#[test]
fn nobody_connects_through_a_clog_before_it_is_lifted() {
    for (from, to) in [("a", "b"), ("b", "a")] {
        let mut world = World::new(5);
        let log = Arc::new(Log::default());
        world.host("b", None, |boot| server(boot, Arc::default()));
        let inside = log.clone();
        world.clog(from, to, true);
        world.host("a", None, move |boot| client(boot, inside.clone()));
        world.run_until(Duration::from_secs(1), |_| false).unwrap();
        assert!(log.got().is_empty());
        world.clog(from, to, false);
        world.run_until(Duration::from_millis(1_100), |_| false).unwrap();
        assert!(!log.got().is_empty(), "connected through {from} to {to}");
    }
}

#[test]
fn a_reset_ends_both_ends_at_once_and_new_connections_come() {
    let mut pair = pair(&Settings::default());
    let at = pair.world.now().as_millis() as u64;
    assert_eq!(pair.world.reset_connections("b", "a"), 1);
    assert_eq!(pair.world.reset_connections("b", "a"), 0, "it is reset already");
    pair.run_for(20);
    for log in [&pair.a, &pair.b] {
        let mut errors = log.errors.lock().unwrap().clone();
        errors.sort();
        let kinds: Vec<&str> = errors.iter().map(|(kind, _)| kind.as_str()).collect();
        assert_eq!(kinds, ["read ConnectionReset", "write ConnectionReset"]);
        assert!(errors[0].1 <= at + 2, "the reader hears of it at once: {errors:?}");
    }
    pair.world.crash("a");
    pair.world.restart("a");
    pair.run_for(200);
    assert!(!pair.b.got().is_empty());
}

#[test]
fn a_reset_wakes_a_reader_that_waits_behind_a_clog() {
    let mut pair = pair(&Settings::default());
    pair.world.clog("a", "b", true);
    pair.run_for(100);
    pair.world.reset_connections("a", "b");
    pair.run_for(2);
    assert_eq!(pair.b.errors.lock().unwrap()[0].0, "read ConnectionReset");
}

#[test]
fn healing_lifts_everything_at_once() {
    let mut pair = pair(&Settings::default());
    pair.world.clog("a", "b", true);
    pair.world.slow_link("a", "b", Spread::uniform_ms(60_000, 60_000), true);
    pair.world.limit_link("b", "a", 1, true);
    pair.run_for(300);
    pair.b.got();
    pair.a.got();
    pair.run_for(300);
    assert!(pair.b.got().is_empty() && pair.a.got().is_empty());
    pair.world.heal_network();
    pair.run_for(30);
    assert!(pair.b.got().len() > 50 && pair.a.got().len() > 50, "what was held back has come");
    pair.run_for(30);
    pair.b.got();
    pair.run_for(300);
    assert!(pair.b.delays().iter().all(|delay| *delay < 30));
}

#[test]
fn the_world_may_have_a_uniform_latency() {
    let mut pair = pair(&Settings { latency: Spread::uniform_ms(20, 40), ..Settings::default() });
    pair.run_for(2_000);
    let delays = pair.b.delays();
    assert!(delays.iter().all(|delay| (20..=42).contains(delay)), "{delays:?}");
    // In order on one connection: a message waits for the one before it, so the average is a little above the middle.
    let mean = delays.iter().sum::<u64>() / delays.len() as u64;
    assert!((29..=36).contains(&mean), "{mean}");
}

#[test]
fn a_writer_whose_bytes_nobody_reads_has_to_wait() {
    const CHUNK: usize = 64 << 10;
    let (written, read) = (Arc::new(Mutex::new(0_usize)), Arc::new(Mutex::new(0_usize)));
    let mut world = World::new(7);
    let inside = read.clone();
    world.host("b", None, move |boot| {
        let read = inside.clone();
        async move {
            let listener = boot.env.net.listen("b:7000").await.map_err(|e| e.to_string())?;
            let (mut stream, _) = listener.accept().await.map_err(|e| e.to_string())?;
            boot.env.clock.sleep(Duration::from_secs(1)).await;
            let mut buffer = vec![0; CHUNK];
            loop {
                *read.lock().unwrap() += stream.read(&mut buffer).await.map_err(|e| e.to_string())?;
            }
        }
    });
    let inside = written.clone();
    world.host("a", None, move |boot| {
        let written = inside.clone();
        async move {
            let mut stream = boot.env.net.connect("b:7000").await.map_err(|e| e.to_string())?;
            for _ in 0..1_000 {
                stream.write_all(&[1; CHUNK]).await.map_err(|e| e.to_string())?;
                *written.lock().unwrap() += CHUNK;
            }
            std::future::pending().await
        }
    });
    world.run_until(Duration::from_millis(900), |_| false).unwrap();
    assert_eq!(*written.lock().unwrap(), 4 << 20, "the kernel's buffers are full");
    world.run_until(Duration::from_secs(3), |_| false).unwrap();
    assert_eq!(*written.lock().unwrap(), 1_000 * CHUNK);
    assert_eq!(*read.lock().unwrap(), 1_000 * CHUNK, "every byte came, once");
}

/// Hosts that each ask all others; says who got answers from whom in a second under a fault.
fn reach(count: usize, fault: impl Fn(&mut World, &[String])) -> Vec<(String, String)> {
    let names: Vec<String> = (0..count).map(|i| format!("h{i}")).collect();
    let mut answers = Vec::new();
    let mut world = World::new(6);
    for name in &names {
        let others: Vec<String> = names.iter().filter(|other| *other != name).cloned().collect();
        let mine: Vec<Arc<Answers>> = others.iter().map(|_| Arc::default()).collect();
        answers.extend(others.iter().zip(&mine).map(|(to, a)| (name.clone(), to.clone(), a.clone())));
        world.host(name, None, move |boot| {
            let (others, mine) = (others.clone(), mine.clone());
            async move {
                for (other, answers) in others.into_iter().zip(mine) {
                    let again = boot.clone();
                    drop(cara_env::spawn(ping::ask(again, other, answers)));
                }
                ping::serve(boot).await
            }
        });
    }
    fault(&mut world, &names);
    world.run_until(Duration::from_secs(1), |_| false).unwrap();
    answers
        .into_iter()
        .filter(|(_, _, answers)| answers.count.load(Ordering::Relaxed) > 0)
        .map(|(from, to, _)| (from, to))
        .collect()
}

#[test]
fn in_a_ring_everybody_reaches_two_neighbours() {
    let reached = reach(5, |world, hosts| world.ring(hosts, true));
    assert_eq!(reached.len(), 10);
    for i in 0..5_usize {
        for next in [(i + 1) % 5, (i + 4) % 5] {
            assert!(reached.contains(&(format!("h{i}"), format!("h{next}"))));
        }
    }
    let lifted = reach(4, |world, hosts| {
        world.ring(hosts, true);
        world.ring(hosts, false);
    });
    assert_eq!(lifted.len(), 12);
    assert_eq!(reach(3, |world, hosts| world.ring(hosts, true)).len(), 6, "three are a ring already");
}

#[test]
fn over_a_bridge_both_halves_see_only_the_middle() {
    let reached = reach(5, |world, hosts| world.bridge(&hosts[..2], &hosts[2..3], &hosts[3..], true));
    for (from, to) in [("h0", "h3"), ("h1", "h4"), ("h4", "h0")] {
        assert!(!reached.contains(&(from.to_owned(), to.to_owned())), "{from} {to}");
    }
    for (from, to) in [("h0", "h1"), ("h0", "h2"), ("h2", "h4"), ("h3", "h2")] {
        assert!(reached.contains(&(from.to_owned(), to.to_owned())), "{from} {to}");
    }
    assert_eq!(reached.len(), 20 - 8);
}

#[test]
fn messages_are_told_with_both_ends_and_change_no_hash() {
    let run = |record: bool| {
        trace::record_messages(record);
        let mut pair = pair(&Settings::default());
        pair.run_for(300);
        pair.world.partition("a", "b");
        pair.run_for(100);
        pair.world.crash("a");
        pair.world.crash("b");
        let messages = trace::take_messages();
        trace::record_messages(false);
        (trace::digest(), messages)
    };
    let (without, none) = run(false);
    let (with, messages) = run(true);
    assert_eq!(without, with);
    assert!(none.list.is_empty());
    assert_eq!(messages.left_out, 0);
    let between = |from: &str| messages.list.iter().filter(|m| m.from == from && m.bytes == 8).collect::<Vec<_>>();
    let (forth, back) = (between("a"), between("b"));
    assert!(forth.len() > 40 && back.len() > 40);
    assert_eq!(forth.len() + back.len(), messages.list.len());
    for message in &messages.list {
        assert!(message.from != message.to);
        assert!(message.received.is_none_or(|at| at > message.sent && at < message.sent + Duration::from_millis(30)));
    }
    let lost = forth.iter().filter(|m| m.received.is_none()).count();
    assert!((8..=20).contains(&lost), "what was written into the partition was never received: {lost}");
}
