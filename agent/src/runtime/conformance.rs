//! What every runtime must do, run for memory always and for Docker where an engine answers.
//!
//! Each case has a cluster id of its own, and whatever carries it is removed afterwards, also after a failure.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use cara_env::{Env, hex};
use cara_volume::VolumePath;
use cara_volume::tree::{Meta, New};
use futures_util::FutureExt;

use super::docker::{DockerRuntime, HOST_DEFAULT};
use super::memory::{MemoryHandle, MemoryRuntime};
use super::*;
use crate::labels::{self, Labels};

const IMAGE: &str = "caravanserai/busybox:test";
/// For what an engine does a moment later. Generous, since it only ends a broken run.
const PATIENCE: Duration = Duration::from_secs(30);

struct Bench {
    runtime: Arc<dyn ContainerRuntime>,
    memory: Option<MemoryHandle>,
    missing_image: &'static str,
    cluster: String,
}

impl Bench {
    fn labels(&self, extra: &[(&str, &str)]) -> Labels {
        let fixed = [(labels::CLUSTER, self.cluster.as_str()), (labels::NODE, "n"), (labels::UID, "u")];
        fixed.iter().chain(extra).map(|(key, value)| ((*key).to_owned(), (*value).to_owned())).collect()
    }

    fn name(&self, part: &str) -> String {
        format!("cara-test-{part}-{}", self.cluster)
    }

    fn object(&self, part: &str) -> Object {
        Object { name: self.name(part), labels: self.labels(&[]) }
    }

    fn container(&self, service: &str, script: &str) -> ContainerSpec {
        ContainerSpec {
            name: self.name(service),
            image: IMAGE.into(),
            command: vec!["/bin/busybox".into(), "sh".into(), "-c".into()],
            args: vec![script.into()],
            env: vec![("GREETING".into(), "hello".into())],
            mounts: Vec::new(),
            ports: Vec::new(),
            network: self.name("net"),
            alias: service.into(),
            labels: self.labels(&[(labels::SERVICE, service), (labels::GENERATION, "1")]),
        }
    }

    /// A network, and a container in it that does nothing until it is told to end.
    async fn idle(&self, service: &str) -> ContainerSpec {
        self.runtime.ensure_network(&self.object("net")).await.expect("a network");
        let container = self.container(service, "trap 'exit 0' TERM; while true; do sleep 0.1; done");
        self.runtime.create(&container).await.expect("a container");
        container
    }

    async fn listing(&self) -> Listing {
        self.runtime.list(&self.labels(&[])).await.expect("a listing")
    }

    async fn info(&self, name: &str) -> Option<ContainerInfo> {
        self.listing().await.containers.into_iter().find(|c| c.name == name)
    }

    async fn until_exited(&self, name: &str) -> ContainerInfo {
        let looking = async {
            loop {
                let info = self.info(name).await.expect("it exists");
                if info.state == ContainerState::Exited {
                    return info;
                }
                tokio::time::sleep(Duration::from_millis(20)).await;
            }
        };
        tokio::time::timeout(PATIENCE, looking).await.expect("it ends")
    }

    async fn clean_up(&self) {
        let filter = Labels::from([(labels::CLUSTER.to_owned(), self.cluster.clone())]);
        let listing = self.runtime.list(&filter).await.expect("a listing");
        for container in listing.containers {
            self.runtime.remove(&container.id).await.expect("removed");
        }
        for network in listing.networks {
            self.runtime.remove_network(&network.name).await.expect("removed");
        }
        for volume in listing.volumes {
            self.runtime.remove_volume(&volume.name).await.expect("removed");
        }
    }
}

async fn on_memory(case: impl AsyncFn(&Bench)) {
    let runtime = MemoryRuntime::new(Env::real().clock);
    let memory = Some(runtime.handle());
    run(Bench { runtime: Arc::new(runtime), memory, missing_image: "missing/x:1", cluster: "c".into() }, case).await;
}

async fn on_docker(name: &str, case: impl AsyncFn(&Bench)) {
    let host = std::env::var("DOCKER_HOST").unwrap_or_else(|_| HOST_DEFAULT.to_owned());
    let env = Env::real();
    let runtime = DockerRuntime::new(env.clock, &host);
    if let Err(error) = runtime.info().await {
        eprintln!("{name}: skipped: no docker engine ({error})");
        return;
    }
    make_image(&runtime).await;
    // Nothing listens on port 1, so the pull fails at once, without a network.
    let missing_image = "127.0.0.1:1/missing/x:1";
    let cluster = hex(&*env.rng, 6);
    run(Bench { runtime: Arc::new(runtime), memory: None, missing_image, cluster }, case).await;
}

async fn run(bench: Bench, case: impl AsyncFn(&Bench)) {
    let outcome = AssertUnwindSafe(case(&bench)).catch_unwind().await;
    bench.clean_up().await;
    if let Err(panic) = outcome {
        std::panic::resume_unwind(panic);
    }
}

/// An image of one file, the machine's static busybox, so that no registry is needed.
async fn make_image(runtime: &DockerRuntime) {
    static MADE: tokio::sync::OnceCell<()> = tokio::sync::OnceCell::const_new();
    MADE.get_or_init(async || {
        let busybox = std::path::Path::new("/bin/busybox");
        assert!(busybox.exists(), "these tests need a static /bin/busybox: install the package busybox-static");
        let busybox = busybox.canonicalize().expect("it exists");
        let root = busybox.parent().and_then(|bin| bin.parent()).expect("it lies in some bin folder");
        let tar = std::process::Command::new("tar").arg("-C").arg(root).args(["-c", "bin/busybox"]).output();
        let tar = tar.expect("tar runs");
        assert!(tar.status.success(), "{}", String::from_utf8_lossy(&tar.stderr));
        let (repo, tag) = IMAGE.split_once(':').expect("a tag");
        let options = bollard::query_parameters::CreateImageOptions {
            from_src: Some("-".into()),
            repo: Some(repo.into()),
            tag: Some(tag.into()),
            changes: vec!["ENV PATH=/bin".into()],
            ..Default::default()
        };
        let client = runtime.client().await.expect("the engine answers");
        let mut steps = client.create_image(Some(options), Some(bollard::body_full(tar.stdout.into())), None);
        while let Some(step) = futures_util::StreamExt::next(&mut steps).await {
            step.expect("the image is made");
        }
    })
    .await;
}

macro_rules! cases {
    ($($case:ident)*) => {
        mod memory_runtime {
            $(#[tokio::test] async fn $case() { super::on_memory(super::$case).await; })*
        }
        mod docker_runtime {
            $(#[tokio::test] async fn $case() { super::on_docker(stringify!($case), super::$case).await; })*
        }
    };
}

cases! {
    info_names_the_engine_and_its_size
    every_step_of_a_container_s_life_may_be_repeated
    networks_and_volumes_may_be_made_and_removed_again
    the_name_of_another_owner_is_never_taken_over
    a_listing_shows_only_what_carries_every_label
    a_missing_image_is_named
    a_volume_outlives_its_container_and_not_its_user
    a_volume_is_filled_and_read_as_a_tree
    a_command_in_a_running_container_tells_its_exit_code
    a_running_container_s_port_can_be_reached
    an_exit_code_is_seen_and_nothing_starts_by_itself
    a_taken_port_is_told_apart_and_freed_by_a_stop
    output_ends_with_the_output
    following_ends_with_the_reader
}

async fn info_names_the_engine_and_its_size(bench: &Bench) {
    let info = bench.runtime.info().await.expect("it answers");
    assert!(info.engine.starts_with("docker ") || info.engine == "memory", "{info:?}");
    assert!(info.cpus > 0 && info.memory_bytes > 0, "{info:?}");
}

async fn every_step_of_a_container_s_life_may_be_repeated(bench: &Bench) {
    let container = bench.idle("web").await;
    let (runtime, name) = (&bench.runtime, container.name.as_str());
    runtime.create(&container).await.expect("again");
    let made = bench.info(name).await.expect("it exists");
    assert_eq!((made.state, made.started_at_ms), (ContainerState::Created, 0));
    assert!(container.labels.iter().all(|(key, value)| made.labels.get(key) == Some(value)), "{made:?}");
    runtime.start(name).await.expect("by name");
    runtime.start(&made.id).await.expect("again, by id");
    let running = bench.info(name).await.expect("it exists");
    assert_eq!((running.state, running.exit_code, &running.id), (ContainerState::Running, None, &made.id));
    assert!(running.started_at_ms > 0);
    runtime.stop(name, Duration::from_secs(5)).await.expect("stopped");
    assert_eq!(bench.info(name).await.expect("it exists").state, ContainerState::Exited, "a stop is confirmed");
    runtime.stop(name, Duration::from_secs(5)).await.expect("again");
    runtime.start(name).await.expect("after a stop");
    runtime.remove(&made.id).await.expect("while it runs");
    assert_eq!(bench.info(name).await, None);
    runtime.remove(&made.id).await.expect("again");
    runtime.stop(&made.id, Duration::from_secs(1)).await.expect("what is gone doesn't run");
    assert!(runtime.start(name).await.is_err(), "what is gone can't start");
}

async fn networks_and_volumes_may_be_made_and_removed_again(bench: &Bench) {
    let (network, volume) = (bench.object("net"), bench.object("vol"));
    for _ in 0..2 {
        bench.runtime.ensure_network(&network).await.expect("made");
        bench.runtime.ensure_volume(&volume).await.expect("made");
    }
    let listing = bench.listing().await;
    assert_eq!((listing.networks, listing.volumes), (vec![network.clone()], vec![volume.clone()]));
    for _ in 0..2 {
        bench.runtime.remove_network(&network.name).await.expect("removed");
        bench.runtime.remove_volume(&volume.name).await.expect("removed");
    }
    assert_eq!(bench.listing().await, Listing::default());
}

async fn the_name_of_another_owner_is_never_taken_over(bench: &Bench) {
    let container = bench.idle("web").await;
    bench.runtime.ensure_volume(&bench.object("vol")).await.expect("made");
    let before = bench.listing().await;
    let other = bench.labels(&[(labels::UID, "other"), (labels::SERVICE, "web")]);
    let mine = |error| matches!(error, Err(RuntimeError::NotOurs { .. }));
    let network = Object { labels: other.clone(), ..bench.object("net") };
    assert!(mine(bench.runtime.ensure_network(&network).await));
    let volume = Object { labels: other.clone(), ..bench.object("vol") };
    assert!(mine(bench.runtime.ensure_volume(&volume).await));
    assert!(mine(bench.runtime.create(&ContainerSpec { labels: other, ..container }).await));
    assert_eq!(bench.listing().await, before, "nothing was changed");
}

async fn a_listing_shows_only_what_carries_every_label(bench: &Bench) {
    let container = bench.idle("web").await;
    let other_node = bench.labels(&[(labels::NODE, "another")]);
    assert_eq!(bench.runtime.list(&other_node).await.expect("a listing"), Listing::default());
    let mut narrow = bench.labels(&[(labels::SERVICE, "web")]);
    let listing = bench.runtime.list(&narrow).await.expect("a listing");
    assert_eq!(listing.containers.len(), 1);
    assert_eq!(listing.containers[0].name, container.name);
    narrow.insert(labels::SERVICE.into(), "db".into());
    assert_eq!(bench.runtime.list(&narrow).await.expect("a listing").containers, []);
}

async fn a_missing_image_is_named(bench: &Bench) {
    bench.runtime.ensure_image(IMAGE).await.expect("it is here");
    let error = bench.runtime.ensure_image(bench.missing_image).await.expect_err("it is nowhere");
    assert!(matches!(&error, RuntimeError::ImageMissing { image, .. } if image == bench.missing_image), "{error:?}");
}

async fn a_volume_outlives_its_container_and_not_its_user(bench: &Bench) {
    let volume = bench.object("vol");
    bench.runtime.ensure_volume(&volume).await.expect("made");
    bench.runtime.ensure_network(&bench.object("net")).await.expect("made");
    let mut container = bench.container("db", "echo kept > /data/file");
    container.mounts.push((volume.name.clone(), "/data".into()));
    bench.runtime.create(&container).await.expect("made");
    bench.runtime.start(&container.name).await.expect("started");
    assert!(bench.runtime.remove_volume(&volume.name).await.is_err(), "it is in use");
    if let Some(memory) = &bench.memory {
        memory.exit(&container.name, 0);
    }
    assert_eq!(bench.until_exited(&container.name).await.exit_code, Some(0));
    bench.runtime.remove(&container.name).await.expect("removed");
    assert_eq!(bench.listing().await.volumes, std::slice::from_ref(&volume));
    // Another container finds the content.
    let mut reader = bench.container("db", "grep -q kept /data/file");
    reader.mounts.clone_from(&container.mounts);
    bench.runtime.create(&reader).await.expect("made");
    bench.runtime.start(&reader.name).await.expect("started");
    if let Some(memory) = &bench.memory {
        memory.exit(&reader.name, 0);
    }
    assert_eq!(bench.until_exited(&reader.name).await.exit_code, Some(0), "the content is there");
}

async fn a_volume_is_filled_and_read_as_a_tree(bench: &Bench) {
    let (runtime, volume) = (&bench.runtime, bench.object("vol"));
    assert!(runtime.volume_tree(&volume.name).await.is_err(), "there is none");
    assert!(runtime.volume_bytes(&volume.name).await.is_err(), "there is none");
    runtime.ensure_volume(&volume).await.expect("made");
    let file = VolumePath::parse(b"file").expect("a path");
    let mut tree = runtime.volume_tree(&volume.name).await.expect("a tree");
    tree.create(&file, New::File).expect("made");
    tree.write(&file, 0, b"kept\n").expect("written");
    tree.set_meta(&file, &Meta { mode: 0o640, uid: 999, gid: 70, ..Meta::default() }).expect("set");
    tree.sync().expect("on disk");
    runtime.store_volume(&volume.name, tree).await.expect("stored");
    let tree = runtime.volume_tree(&volume.name).await.expect("a tree");
    let stat = tree.stat(&file).expect("read").expect("it is there");
    assert_eq!((stat.size, stat.mode, stat.uid, stat.gid), (5, 0o640, 999, 70));
    drop(tree);
    let bytes = runtime.volume_bytes(&volume.name).await.expect("measured");
    assert!(bytes == Some(5) || (bench.memory.is_none() && bytes.is_none()), "{bytes:?}: Docker's may be out of reach");
    if bench.memory.is_some() {
        return; // Its containers can't read.
    }
    runtime.ensure_network(&bench.object("net")).await.expect("made");
    let mut reader =
        bench.container("db", "test \"$(stat -c '%u %g %a' /data/file)\" = '999 70 640' && grep -q kept /data/file");
    reader.mounts.push((volume.name.clone(), "/data".into()));
    runtime.create(&reader).await.expect("made");
    runtime.start(&reader.name).await.expect("started");
    assert_eq!(bench.until_exited(&reader.name).await.exit_code, Some(0), "a container finds it as it was written");
}

async fn a_command_in_a_running_container_tells_its_exit_code(bench: &Bench) {
    let container = bench.idle("web").await;
    let command = |word: &str| ["/bin/busybox".to_owned(), word.to_owned()];
    assert!(bench.runtime.exec(&container.name, &command("true")).await.is_err(), "it does not run");
    bench.runtime.start(&container.name).await.expect("started");
    assert_eq!(bench.runtime.exec(&container.name, &command("true")).await, Ok(0));
    if let Some(memory) = &bench.memory {
        memory.fault(|faults| faults.unwell = ["u".to_owned()].into());
    }
    assert_eq!(bench.runtime.exec(&container.name, &command("false")).await, Ok(1));
}

async fn a_running_container_s_port_can_be_reached(bench: &Bench) {
    let container = bench.idle("web").await;
    bench.runtime.start(&container.name).await.expect("started");
    match bench.runtime.endpoint(&container.name, 80).await.expect("an endpoint") {
        Endpoint::Engine { listens } => assert!(listens && bench.memory.is_some()),
        Endpoint::Address(address) => assert!(address.ends_with(":80") && bench.memory.is_none(), "{address}"),
    }
}

async fn an_exit_code_is_seen_and_nothing_starts_by_itself(bench: &Bench) {
    bench.runtime.ensure_network(&bench.object("net")).await.expect("made");
    let container = bench.container("job", "exit 3");
    bench.runtime.create(&container).await.expect("made");
    bench.runtime.start(&container.name).await.expect("started");
    if let Some(memory) = &bench.memory {
        memory.exit(&container.name, 3);
    }
    let ended = bench.until_exited(&container.name).await;
    assert_eq!(ended.exit_code, Some(3));
    assert_eq!(bench.info(&container.name).await, Some(ended), "it stays ended");
}

async fn a_taken_port_is_told_apart_and_freed_by_a_stop(bench: &Bench) {
    let free = std::net::TcpListener::bind("127.0.0.1:0").expect("a port").local_addr().expect("bound").port();
    bench.runtime.ensure_network(&bench.object("net")).await.expect("made");
    let names = ["one", "two"].map(|service| {
        let mut container = bench.container(service, "trap 'exit 0' TERM; while true; do sleep 0.1; done");
        let (protocol, bind_address) = ("tcp".into(), "127.0.0.1".into());
        container.ports.push(PortSpec { container: 80, host: free.into(), protocol, bind_address });
        container
    });
    for container in &names {
        bench.runtime.create(container).await.expect("made");
    }
    bench.runtime.start(&names[0].name).await.expect("the first has it");
    let error = bench.runtime.start(&names[1].name).await.expect_err("it is taken");
    assert!(matches!(error, RuntimeError::PortTaken { .. }), "{error:?}");
    bench.runtime.stop(&names[0].name, Duration::from_secs(5)).await.expect("stopped");
    bench.runtime.start(&names[1].name).await.expect("the port is free again");
}

async fn read_all(bench: &Bench, name: &str, options: LogOptions) -> String {
    let (sink, mut pieces) = mpsc::channel(4);
    let reading = bench.runtime.logs(name, options, sink);
    let collecting = async {
        let mut text = Vec::new();
        while let Some(piece) = pieces.recv().await {
            text.extend_from_slice(&piece);
        }
        String::from_utf8(text).expect("text")
    };
    let (read, text) =
        tokio::time::timeout(PATIENCE, async { tokio::join!(reading, collecting) }).await.expect("it ends");
    read.expect("output");
    text
}

async fn output_ends_with_the_output(bench: &Bench) {
    bench.runtime.ensure_network(&bench.object("net")).await.expect("made");
    let container = bench.container("job", "echo one; echo $GREETING >&2; echo last");
    bench.runtime.create(&container).await.expect("made");
    bench.runtime.start(&container.name).await.expect("started");
    if let Some(memory) = &bench.memory {
        memory.exit(&container.name, 0);
    }
    bench.until_exited(&container.name).await;
    let all = read_all(bench, &container.name, LogOptions::default()).await;
    assert_eq!(all.lines().count(), 3, "{all}");
    let last = read_all(bench, &container.name, LogOptions { tail: 1, ..LogOptions::default() }).await;
    assert_eq!(last.lines().count(), 1, "{last}");
    let (sink, _pieces) = mpsc::channel(1);
    assert!(bench.runtime.logs("cara-test-nothing", LogOptions::default(), sink).await.is_err());
}

async fn following_ends_with_the_reader(bench: &Bench) {
    bench.runtime.ensure_network(&bench.object("net")).await.expect("made");
    let container = bench.container("chat", "while true; do echo tick; sleep 0.1; done");
    bench.runtime.create(&container).await.expect("made");
    bench.runtime.start(&container.name).await.expect("started");
    let (sink, mut pieces) = mpsc::channel(1);
    let options = LogOptions { follow: true, ..LogOptions::default() };
    let reading = bench.runtime.logs(&container.name, options, sink);
    let listening = async {
        let first = pieces.recv().await;
        drop(pieces);
        first
    };
    let (read, first) =
        tokio::time::timeout(PATIENCE, async { tokio::join!(reading, listening) }).await.expect("it ends");
    read.expect("output");
    assert!(first.is_some());
}
