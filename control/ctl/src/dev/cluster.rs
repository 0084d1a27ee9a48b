//! Starts, kills and restarts a cluster of the real binaries on loopback.
//!
//! ```text
//!   Cluster::new(plan) -> boot(): init s1, run s1, join s2.., run them, start the agents -> ready
//!      kill(name) ... until_leader_other_than / until_sessions_on / until_caught_up ... start(name)
//!   stop(): everything killed, a temporary folder removed. Dropping does the same, without waiting.
//! ```
//!
//! Invariant: no process and no temporary folder outlives the [`Cluster`], also when booting fails half-way.

use std::net::TcpListener;
use std::path::{Path, PathBuf};

use cara_env::Env;
use cara_proto::rest::{ClusterView, JoinTokenRequest, List, MintedToken};
use serde::Deserialize;
use serde_json::Value;

use super::error::DevError;
use super::process::{Binaries, Process, run};
use super::until::STEP_MAX;
use crate::client::{Access, Client, ClientError};
use crate::view::text;

/// What to start.
#[derive(Debug, Clone)]
pub struct Plan {
    /// Where the programs are.
    pub binaries: Binaries,
    /// How many servers, named `s1`, `s2`, ...
    pub servers: u8,
    /// How many agents, named `a1`, `a2`, ...
    pub agents: u8,
    /// `memory` or `docker`.
    pub runtime: String,
    /// Where data and logs go, and stay; `None` = a temporary folder that is removed.
    pub folder: Option<PathBuf>,
}

/// What `cara-server init --output json` prints.
#[derive(Deserialize)]
struct Founded {
    token: String,
    ca_fingerprint: String,
}

/// A running cluster.
#[derive(Debug)]
pub struct Cluster {
    pub(super) env: Env,
    plan: Plan,
    folder: PathBuf,
    temporary: bool,
    access: Access,
    server_arguments: Vec<String>,
    pub(super) servers: Vec<Process>,
    pub(super) agents: Vec<Process>,
}

impl Cluster {
    /// Makes the folder; starts nothing yet.
    ///
    /// # Errors
    /// When the folder can't be made, or holds something already.
    pub fn new(env: &Env, plan: Plan) -> Result<Self, DevError> {
        let temporary = plan.folder.is_none();
        let folder = plan
            .folder
            .clone()
            .unwrap_or_else(|| std::env::temp_dir().join(format!("cara-dev-{}", cara_env::hex(&*env.rng, 4))));
        make_folder(&folder)
            .map_err(|why| DevError::Setup(format!("can't use the folder {}: {why}", folder.display())))?;
        let access = Access::default();
        let (servers, agents, server_arguments) = (Vec::new(), Vec::new(), Vec::new());
        Ok(Self { env: env.clone(), plan, folder, temporary, access, server_arguments, servers, agents })
    }

    /// More arguments for each `cara-server run`.
    #[must_use]
    pub fn with_server_arguments(mut self, arguments: &[&str]) -> Self {
        self.server_arguments.extend(args(arguments));
        self
    }

    /// Starts everything and returns when all servers vote and all agents are online. `say` is told of each step.
    ///
    /// # Errors
    /// Names the step that failed, with the last words of the program concerned.
    pub async fn boot(&mut self, say: &(dyn Fn(&str) + Sync)) -> Result<(), DevError> {
        let ports = free_ports(self.plan.servers.into())
            .map_err(|e| DevError::Setup(format!("no free port on 127.0.0.1: {e}")))?;
        for (index, port) in ports.into_iter().enumerate() {
            self.add_server(index + 1, port).await?;
            say(&format!("server s{} votes ({} of {})", index + 1, index + 1, self.plan.servers));
        }
        for index in 1..=self.plan.agents {
            self.add_agent(&format!("a{index}")).await?;
        }
        let agents = self.agents.len();
        self.until("all agents being online", STEP_MAX, async |client| {
            let nodes: List<Value> = client.get("/nodes").await.ok()?;
            let online = nodes.items.iter().filter(|n| text(n, "/status/connection") == "online").count();
            (online == agents).then_some(())
        })
        .await?;
        say(&format!("{agents} agents online ({} runtime)", self.plan.runtime));
        Ok(())
    }

    async fn add_server(&mut self, number: usize, port: u16) -> Result<(), DevError> {
        let name = format!("s{number}");
        let data = self.folder.join(&name).display().to_string();
        let address = format!("127.0.0.1:{port}");
        let mut identity = args(&["--data-dir", &data, "--name", &name, "--listen", &address, "--advertise", &address]);
        if number == 1 {
            let what = "cara-server init (s1)";
            identity.splice(0..0, args(&["init"]));
            identity.extend(args(&["--output", "json"]));
            let printed = self.step(what, &identity).await?;
            let founded: Founded = serde_json::from_str(&printed).map_err(|e| DevError::Step {
                what: what.to_owned(),
                said: format!("its output is not as expected: {e}"),
            })?;
            self.access.token = founded.token;
            self.access.ca_fingerprint = founded.ca_fingerprint;
        } else {
            let minted = self.mint("/servers/join-tokens", None).await?;
            identity.splice(0..0, args(&["join"]));
            identity.extend(args(&["--token", &minted.token]));
            self.step(&format!("cara-server join ({name})"), &identity).await?;
        }
        let mut run = args(&["run", "--data-dir", &data, "--log-format", "pretty"]);
        // To play with and to measure: nobody is asked to slow down.
        run.extend(args(&["--rate-per-token", "0", "--rate-per-address", "0", "--connections-per-address", "0"]));
        run.extend(self.server_arguments.clone());
        self.servers.push(Process::new(&name, &self.folder, &self.plan.binaries.server, run));
        self.start(&name)?;
        self.access.servers.push(format!("https://{address}"));
        self.until(&format!("server {name} becoming a voter"), STEP_MAX, async |client| {
            let view: ClusterView = client.get("/servers").await.ok()?;
            let votes = view.servers.iter().any(|s| s.name == name && s.voter && s.role != "unreachable");
            (!view.leader.is_empty() && votes).then_some(())
        })
        .await
    }

    async fn add_agent(&mut self, name: &str) -> Result<(), DevError> {
        let minted = self.mint("/nodes/join-tokens", Some(name.to_owned())).await?;
        let data = self.folder.join(name).display().to_string();
        let arguments = args(&[
            "--data-dir",
            &data,
            "--name",
            name,
            "--advertise",
            "127.0.0.1",
            "--runtime",
            &self.plan.runtime,
            "--backoff-max",
            "2",
            "--token",
            &minted.token,
        ]);
        self.agents.push(Process::new(name, &self.folder, &self.plan.binaries.agent, arguments));
        self.start(name)
    }

    async fn mint(&self, path: &str, node_name: Option<String>) -> Result<MintedToken, DevError> {
        let request = JoinTokenRequest { node_name, ..JoinTokenRequest::default() };
        Ok(self.client()?.post(path, &request).await?.json()?)
    }

    async fn step(&self, what: &str, arguments: &[String]) -> Result<String, DevError> {
        let running = run(&self.plan.binaries.server, arguments);
        match cara_env::timeout(&*self.env.clock, STEP_MAX, running).await {
            Ok(result) => result.map_err(|said| DevError::Step { what: what.to_owned(), said }),
            Err(_) => Err(DevError::Timeout { what: what.to_owned(), limit: STEP_MAX, said: String::new() }),
        }
    }

    /// How to enter the cluster as its root.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// Where data and logs are.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Names and process ids of the servers that run now.
    pub fn server_processes(&self) -> Vec<(String, u32)> {
        self.servers.iter().filter_map(|server| Some((server.name.clone(), server.id()?))).collect()
    }

    /// Names of all agents.
    pub fn agents(&self) -> Vec<String> {
        self.agents.iter().map(|p| p.name.clone()).collect()
    }

    /// A client that knows all servers.
    ///
    /// # Errors
    /// Before the first server was founded.
    pub fn client(&self) -> Result<Client, ClientError> {
        Client::new(&self.env, &self.access)
    }

    /// The cluster as its leader sees it.
    ///
    /// # Errors
    /// When there is no leader.
    pub async fn view(&self) -> Result<ClusterView, ClientError> {
        self.client()?.get("/servers").await
    }

    /// Kills a server or an agent with SIGKILL.
    ///
    /// # Errors
    /// When there is none of this name.
    pub async fn kill(&mut self, name: &str) -> Result<(), DevError> {
        let process = self.process(name)?;
        process.kill().await.map_err(|e| DevError::Setup(format!("can't kill {name}: {e}")))
    }

    /// Starts a killed server or agent again, on its old data.
    ///
    /// # Errors
    /// When there is none of this name, or it can't be started.
    pub fn start(&mut self, name: &str) -> Result<(), DevError> {
        let process = self.process(name)?;
        process.start().map_err(|e| DevError::Setup(format!("can't start {name}: {e}")))
    }

    fn process(&mut self, name: &str) -> Result<&mut Process, DevError> {
        let mut all = self.servers.iter_mut().chain(&mut self.agents);
        all.find(|p| p.name == name).ok_or_else(|| DevError::Setup(format!("there is no process {name:?}")))
    }

    /// Has a process ended that nobody killed?
    ///
    /// # Errors
    /// Names it, with its last words.
    pub fn check(&mut self) -> Result<(), DevError> {
        for process in self.servers.iter_mut().chain(&mut self.agents) {
            if let Some(status) = process.died() {
                let (name, said) = (process.name.clone(), process.last_lines());
                return Err(DevError::Died { name, status: status.to_string(), said });
            }
        }
        Ok(())
    }

    /// Kills everything and removes a temporary folder.
    pub async fn stop(mut self) {
        for process in self.agents.iter_mut().chain(&mut self.servers) {
            let _ = process.kill().await; // It is gone already.
        }
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        self.agents.clear(); // Dropping a process kills it.
        self.servers.clear();
        if self.temporary {
            // A process that is just dying may still create a file; the second attempt gets it.
            let _ = std::fs::remove_dir_all(&self.folder).or_else(|_| std::fs::remove_dir_all(&self.folder));
        }
    }
}

fn make_folder(folder: &Path) -> Result<(), String> {
    use std::os::unix::fs::DirBuilderExt;
    std::fs::DirBuilder::new().recursive(true).mode(0o700).create(folder).map_err(|e| e.to_string())?;
    let mut entries = std::fs::read_dir(folder).map_err(|e| e.to_string())?;
    if entries.next().is_some() { Err("it is not empty".to_owned()) } else { Ok(()) }
}

/// Ports that are free now. All are held until the last is found, so that they differ.
///
/// # Errors
/// When the system has none.
pub fn free_ports(count: usize) -> std::io::Result<Vec<u16>> {
    let listeners: std::io::Result<Vec<TcpListener>> = (0..count).map(|_| TcpListener::bind("127.0.0.1:0")).collect();
    listeners?.iter().map(|l| Ok(l.local_addr()?.port())).collect()
}

fn args(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn plan(folder: Option<PathBuf>, server: &str) -> Plan {
        let binaries = Binaries { server: server.into(), agent: "/bin/false".into() };
        Plan { binaries, servers: 1, agents: 0, runtime: "memory".into(), folder }
    }

    #[test]
    fn a_folder_with_something_in_it_is_left_alone() {
        let folder = tempfile::tempdir().expect("temporary folder");
        std::fs::write(folder.path().join("mine"), "x").expect("written");
        let error =
            Cluster::new(&Env::real(), plan(Some(folder.path().to_owned()), "/bin/true")).expect_err("not empty");
        assert!(error.to_string().contains("not empty"), "{error}");
        assert!(folder.path().join("mine").exists());
    }

    #[tokio::test]
    async fn a_failed_start_says_why_and_leaves_nothing() {
        for (server, said) in [("/bin/false", "exit status: 1"), ("/bin/true", "not as expected")] {
            let mut cluster = Cluster::new(&Env::real(), plan(None, server)).expect("a new folder");
            let folder = cluster.folder().to_owned();
            let error = cluster.boot(&|_| ()).await.expect_err("it can't start");
            assert!(error.said().contains(said), "{error}: {}", error.said());
            assert!(folder.exists());
            drop(cluster);
            assert!(!folder.exists());
        }
    }

    #[test]
    fn free_ports_differ() {
        let mut ports = free_ports(5).expect("loopback");
        ports.sort_unstable();
        ports.dedup();
        assert_eq!(ports.len(), 5);
    }
}
