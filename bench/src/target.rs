//! What is measured: a cluster of real processes that the bench starts and stops, or one that the user has.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use cara_env::Env;
use cara_proto::rest::ClusterView;
use caractrl::client::{Access, Client};
use caractrl::dev::Binaries;
use caractrl::dev::cluster::{Cluster, Plan};

use crate::measure::process::Usage;

/// A cluster under measurement.
pub struct Target {
    env: Env,
    access: Access,
    /// None when the user has it.
    cluster: Option<Cluster>,
}

impl Target {
    /// Starts servers of the binaries beside this program, in a temporary folder.
    pub async fn start(env: &Env, servers: u8, heartbeat: Duration, say: impl Fn(&str) + Sync) -> anyhow::Result<Self> {
        let binaries = Binaries::beside_this_program().map_err(anyhow::Error::msg)?;
        let plan = Plan { binaries, servers, agents: 0, runtime: "memory".to_owned(), folder: None };
        let beat = heartbeat.as_secs_f64().to_string();
        let mut cluster = Cluster::new(env, plan)?.with_server_arguments(&["--agent-heartbeat-s", &beat]);
        cluster.boot(&|line| say(line)).await?;
        Ok(Self { env: env.clone(), access: cluster.access().clone(), cluster: Some(cluster) })
    }

    /// The user's own.
    pub fn given(env: &Env, access: Access) -> Self {
        Self { env: env.clone(), access, cluster: None }
    }

    /// How to enter it.
    pub fn access(&self) -> &Access {
        &self.access
    }

    /// A client that knows all servers.
    pub fn client(&self) -> anyhow::Result<Client> {
        Ok(Client::new(&self.env, &self.access)?)
    }

    /// The cluster as its leader sees it.
    pub async fn view(&self) -> anyhow::Result<ClusterView> {
        Ok(self.client()?.get("/servers").await?)
    }

    /// Names and process ids of the servers; none when they are not ours.
    pub fn processes(&self) -> Vec<(String, u32)> {
        self.cluster.as_ref().map(Cluster::server_processes).unwrap_or_default()
    }

    /// What the servers use together.
    pub fn usage(&self) -> Usage {
        let pids: Vec<u32> = self.processes().iter().map(|(_, pid)| *pid).collect();
        Usage::of_all(&pids)
    }

    /// What the leader uses.
    pub async fn leader_usage(&self) -> anyhow::Result<Usage> {
        let leader = self.view().await?.leader;
        let processes = self.processes();
        Ok(processes.iter().find(|(name, _)| *name == leader).map(|(_, pid)| Usage::of(*pid)).unwrap_or_default())
    }

    /// Where the servers' disks are; the folder for temporary files when they are not ours.
    pub fn folder(&self) -> PathBuf {
        self.cluster.as_ref().map_or_else(std::env::temp_dir, |cluster| Cluster::folder(cluster).to_owned())
    }

    /// Names and addresses of all servers but one.
    pub async fn others(&self, name: &str) -> anyhow::Result<Vec<String>> {
        let servers = self.view().await?.servers;
        Ok(servers.into_iter().filter(|server| server.name != name).map(|server| server.address).collect())
    }

    /// Kills a server with SIGKILL.
    pub async fn kill(&mut self, name: &str) -> anyhow::Result<()> {
        self.own()?.kill(name).await.with_context(|| format!("{name} could not be killed"))
    }

    /// Starts a killed server again and waits for nothing.
    pub fn start_again(&mut self, name: &str) -> anyhow::Result<()> {
        Ok(self.own()?.start(name)?)
    }

    /// Waits until a server has everything that the leader has.
    pub async fn until_caught_up(&mut self, name: &str) -> anyhow::Result<()> {
        Ok(self.own()?.until_caught_up(name).await?)
    }

    fn own(&mut self) -> anyhow::Result<&mut Cluster> {
        match &mut self.cluster {
            Some(cluster) => Ok(cluster),
            None => bail!("this bench kills only servers that it has started itself: leave --server out"),
        }
    }

    /// Has a server ended that nobody killed?
    pub fn check(&mut self) -> anyhow::Result<()> {
        self.cluster.as_mut().map_or(Ok(()), |cluster| Ok(cluster.check()?))
    }

    /// Stops what was started.
    pub async fn stop(self) {
        if let Some(cluster) = self.cluster {
            cluster.stop().await;
        }
    }
}
