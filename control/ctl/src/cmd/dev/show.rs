//! What `dev` shows: how to enter, the state, and the loss of the leader step by step.

use cara_env::Env;
use cara_proto::rest::{JoinTokenRequest, List, MintedToken};
use serde_json::Value;

use super::keys::Printer;
use crate::client::Access;
use crate::cmd::Context;
use crate::dev::DevError;
use crate::dev::cluster::Cluster;
use crate::failure::{Failure, Outcome, exit};
use crate::kind::Kind;
use crate::view;

pub(super) const KEYS: &str = "keys: k kill the leader   s status   q quit";

/// An example that can be applied at once.
const HELLO: &str = "\
apiVersion: caravanserai/v1
kind: App
metadata:
  name: hello
spec:
  image: busybox:1.36
  command: [sh, -c, 'echo hello; sleep 1000000']
";

/// Tells how to enter the cluster, and what to try.
pub(super) fn ready(cx: &Context, cluster: &Cluster, seconds: f64) -> Outcome {
    let folder = cluster.folder();
    let write = |name: &str, text: &str| {
        cx.env.files.write(&folder.join(name), text.as_bytes(), 0o600).map_err(|e| {
            Failure::new(exit::OTHER, "dev", format!("can't write {}", folder.join(name).display())).why(e.to_string())
        })
    };
    let exports = exports(cluster.access());
    write("env", &exports)?;
    write("hello.yaml", HELLO)?;
    let folder = folder.display();
    let text = format!(
        "\ndev cluster up in {seconds:.1} s   {} servers   agents {}\n\n\
         In another shell (or: . {folder}/env):\n{}\n\
         Then try:\n  \
         caractrl servers\n  \
         caractrl nodes list\n  \
         caractrl apply -f {folder}/hello.yaml --wait\n  \
         caractrl get workloads --watch\n\n\
         Logs and data: {folder}\n{KEYS}",
        cluster.access().servers.len(),
        cluster.agents().join(" "),
        exports.lines().map(|line| format!("  {line}\n")).collect::<String>(),
    );
    cx.ui.data(&text);
    Ok(())
}

fn exports(access: &Access) -> String {
    format!(
        "export CARA_SERVERS={}\nexport CARA_TOKEN={}\nexport CARA_CA_FINGERPRINT={}\n",
        access.servers.join(","),
        access.token,
        access.ca_fingerprint
    )
}

/// Servers and nodes as tables.
pub(super) async fn status(env: &Env, cluster: &Cluster, out: &Printer) -> Result<(), DevError> {
    let servers = cluster.view().await?;
    let nodes: List<Value> = cluster.client()?.get("/nodes").await?;
    out.line(&view::table(Kind::Server, &view::server_rows(&servers), false, 0).render(true, false, true));
    out.line(&view::summary(&servers));
    out.line("");
    out.line(&view::table(Kind::Node, &nodes.items, false, env.clock.wall_ms()).render(true, false, true));
    Ok(())
}

/// Kills the leader with SIGKILL, tells what follows with measured times, and starts it again.
pub(super) async fn kill_leader(env: &Env, cluster: &mut Cluster, out: &Printer) -> Result<(), DevError> {
    let before = cluster.view().await?;
    if before.voters < 3 {
        out.line("with fewer than three servers the cluster would stop; start it with --servers 3");
        return Ok(());
    }
    if before.can_lose == 0 {
        out.line(&format!("not now: {}", view::summary(&before)));
        return Ok(());
    }
    let running = containers(cluster).await?;
    let killed = before.leader;
    let started = env.clock.monotonic();
    let say = |text: &str| out.line(&format!("{:>6.2} s  {text}", (env.clock.monotonic() - started).as_secs_f64()));
    cluster.kill(&killed).await?;
    say(&format!("killed {killed} (leader of term {}) with SIGKILL", before.term));
    let now = cluster.until_leader_other_than(&killed).await?;
    say(&format!("{} leads term {}", now.leader, now.term));
    first_write(cluster).await?;
    say("a new write is acknowledged");
    cluster.until_sessions_on(&now.leader).await?;
    let after = containers(cluster).await?;
    let same = running.iter().filter(|container| after.contains(container)).count();
    let told = match running.len() {
        0 => "nothing ran on them (try hello.yaml)".to_owned(),
        all => format!("{same} of {all} running containers ran on without a restart"),
    };
    say(&format!("agents {} are back; {told}", cluster.agents().join(" ")));
    cluster.start(&killed)?;
    say(&format!("{killed} started again on its old data"));
    cluster.until_caught_up(&killed).await?;
    say(&format!("{killed} has caught up; {}", view::summary(&cluster.view().await?)));
    Ok(())
}

/// Each running container: whose it is, its id, and since when it runs.
async fn containers(cluster: &Cluster) -> Result<Vec<[String; 3]>, DevError> {
    let workloads: List<Value> = cluster.client()?.get(Kind::Workload.path()).await?;
    let mut found = Vec::new();
    for workload in &workloads.items {
        for container in view::list(workload, "/status/containers") {
            if view::text(container, "/state") == "running" {
                let uid = view::text(workload, "/metadata/uid");
                found.push([uid, view::text(container, "/id"), view::text(container, "/startedAt")]);
            }
        }
    }
    Ok(found)
}

/// A write that leaves nothing behind: a join token, made and revoked.
async fn first_write(cluster: &Cluster) -> Result<(), DevError> {
    let client = cluster.client()?;
    let minted: MintedToken = client.post("/nodes/join-tokens", &JoinTokenRequest::default()).await?.json()?;
    client.delete(&format!("/nodes/join-tokens/{}", minted.id)).await?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_example_is_a_right_manifest() {
        let (good, bad) = crate::manifest::parse("hello.yaml", HELLO);
        assert_eq!((good.len(), bad), (1, vec![]));
    }
}
