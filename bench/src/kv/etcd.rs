//! etcd's side: its own server processes with their defaults, and its gRPC, over plain TCP or over TLS as ours.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::Arc;
use std::time::Duration;

use anyhow::{Context as _, bail};
use bytes::Bytes;
use cara_env::{Env, Executor};
use caractrl::dev::cluster::free_ports;
use tokio::process::{Child, Command};
use tonic::transport::{Channel, Endpoint};

use super::etcd_tls::EtcdTls;
use super::peer::{Client, Peer};
use wire::kv_client::KvClient;
use wire::maintenance_client::MaintenanceClient;
use wire::{PutRequest, RangeRequest, StatusRequest, StatusResponse};

#[allow(missing_docs, clippy::all, rust_2018_idioms)] // Generated; proto/etcd.proto says what it is.
mod wire {
    tonic::include_proto!("etcdserverpb");
}

/// A call that is not answered by then has failed; the same as ours.
const DEADLINE: Duration = Duration::from_secs(10);
/// Between two looks at a server that starts.
const LOOK: Duration = Duration::from_millis(50);
/// A server that doesn't serve by then never will.
const START_MAX: Duration = Duration::from_secs(60);

/// Where the program is; none when it isn't installed.
pub fn program() -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join("etcd")).find(|file| file.is_file())
}

struct EtcdClient {
    env: Env,
    kv: KvClient<Channel>,
}

#[async_trait::async_trait]
impl Client for EtcdClient {
    async fn write(&self, key: usize, value: u64) -> anyhow::Result<()> {
        let value = Bytes::from(format!("{value:0>256}"));
        let put = PutRequest { key: key_of(key), value };
        let mut kv = self.kv.clone();
        cara_env::timeout(&*self.env.clock, DEADLINE, kv.put(put)).await.context("no answer from etcd")??;
        Ok(())
    }

    async fn read(&self, key: usize) -> anyhow::Result<()> {
        let range = RangeRequest { key: key_of(key), serializable: false };
        let mut kv = self.kv.clone();
        let answer = cara_env::timeout(&*self.env.clock, DEADLINE, kv.range(range)).await;
        let found = answer.context("no answer from etcd")??.into_inner();
        if found.kvs.len() != 1 {
            bail!("etcd has {} values of key {key}", found.kvs.len());
        }
        Ok(())
    }
}

fn key_of(key: usize) -> Bytes {
    Bytes::from(format!("bench-key-{key}"))
}

/// How etcd is called, and its servers call each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Wire {
    /// Plain TCP: how its makers measure it. An advantage over us.
    Plain,
    /// TLS, as ours.
    Tls,
}

/// Its servers. Dropping them kills them and removes their folder.
pub struct EtcdServers {
    env: Env,
    program: PathBuf,
    folder: PathBuf,
    members: Vec<Member>,
    cluster: String,
    tls: Option<EtcdTls>,
}

struct Member {
    name: String,
    /// `host:port` for clients.
    client: String,
    /// `host:port` for the other servers.
    peer: String,
    child: Option<Child>,
}

impl EtcdServers {
    /// Starts them, their folder inside of `beside`, so that both sides are on the same disk.
    pub async fn start(env: &Env, count: usize, wire: Wire, beside: &Path) -> anyhow::Result<Self> {
        let program = program().context("etcd is not installed: run deploy/setup/etcd.sh")?;
        let folder = beside.join(format!("etcd-{}", cara_env::hex(&*env.rng, 4)));
        std::fs::create_dir_all(&folder).with_context(|| format!("can't make {}", folder.display()))?;
        let ports = free_ports(2 * count).context("no free ports on 127.0.0.1")?;
        let members: Vec<Member> = (0..count)
            .map(|index| Member {
                name: format!("e{}", index + 1),
                client: format!("127.0.0.1:{}", ports[2 * index]),
                peer: format!("127.0.0.1:{}", ports[2 * index + 1]),
                child: None,
            })
            .collect();
        let tls = if wire == Wire::Tls { Some(EtcdTls::make(env, &folder)?) } else { None };
        let mut servers = Self { env: env.clone(), program, folder, members, cluster: String::new(), tls };
        let all = servers.members.iter().map(|member| format!("{}={}", member.name, servers.url(&member.peer)));
        servers.cluster = all.collect::<Vec<_>>().join(",");
        for index in 0..count {
            servers.spawn(index)?;
        }
        for index in 0..count {
            servers.until_serving(index).await?;
        }
        Ok(servers)
    }

    /// Its version.
    pub async fn version(&self) -> anyhow::Result<String> {
        Ok(format!("etcd {}", self.status(0).await?.version))
    }

    fn url(&self, address: &str) -> String {
        format!("{}://{address}", if self.tls.is_some() { "https" } else { "http" })
    }

    fn spawn(&mut self, index: usize) -> anyhow::Result<()> {
        let member = &self.members[index];
        let (client, peer) = (self.url(&member.client), self.url(&member.peer));
        let log = self.folder.join(format!("{}.log", member.name));
        let log = File::options().create(true).append(true).open(log)?;
        let data = self.folder.join(&member.name);
        let child = Command::new(&self.program)
            .args(["--name", &member.name, "--data-dir"])
            .arg(&data)
            .args(["--listen-client-urls", &client, "--advertise-client-urls", &client])
            .args(["--listen-peer-urls", &peer, "--initial-advertise-peer-urls", &peer])
            .args(["--initial-cluster", &self.cluster, "--initial-cluster-token", "cara-bench"])
            .args(self.tls.as_ref().map(EtcdTls::arguments).unwrap_or_default())
            .args(["--log-level", "error"])
            .stdin(Stdio::null())
            .stdout(log.try_clone()?)
            .stderr(log)
            .process_group(0)
            .kill_on_drop(true)
            .spawn()
            .with_context(|| format!("can't start {}", self.program.display()))?;
        self.members[index].child = Some(child);
        Ok(())
    }

    async fn channel(&self, index: usize) -> anyhow::Result<Channel> {
        let address = &self.members[index].client;
        if let Some(tls) = &self.tls {
            return Ok(cara_transport::connect(&self.env, address, tls.client.clone(), DEADLINE).await?);
        }
        let endpoint = Endpoint::from_shared(self.url(address))?.executor(Executor).tcp_nodelay(true);
        Ok(endpoint.connect().await?)
    }

    async fn status(&self, index: usize) -> anyhow::Result<StatusResponse> {
        let mut client = MaintenanceClient::new(self.channel(index).await?);
        let asked = cara_env::timeout(&*self.env.clock, DEADLINE, client.status(StatusRequest {})).await;
        Ok(asked.context("no answer from etcd")??.into_inner())
    }

    /// Returns once a linearizable read goes through this member.
    async fn until_serving(&self, index: usize) -> anyhow::Result<()> {
        let began = self.env.clock.monotonic();
        loop {
            if let Ok(client) = self.connect(index).await
                && client.write(0, 0).await.is_ok()
                && client.read(0).await.is_ok()
            {
                return Ok(());
            }
            if self.env.clock.monotonic().saturating_sub(began) > START_MAX {
                bail!("{} does not serve; its log is in {}", self.members[index].name, self.folder.display());
            }
            self.env.clock.sleep(LOOK).await;
        }
    }

    pub async fn stop(mut self) {
        for member in &mut self.members {
            if let Some(mut child) = member.child.take() {
                drop(child.kill().await); // It is gone already.
            }
        }
    }
}

impl Drop for EtcdServers {
    fn drop(&mut self) {
        self.members.clear(); // Dropping a child kills it.
        // A process that is just dying may still create a file; the second attempt gets it.
        let _ = std::fs::remove_dir_all(&self.folder).or_else(|_| std::fs::remove_dir_all(&self.folder));
    }
}

#[async_trait::async_trait(?Send)]
impl Peer for EtcdServers {
    fn name(&self) -> &'static str {
        "etcd"
    }

    fn servers(&self) -> usize {
        self.members.len()
    }

    async fn connect(&self, server: usize) -> anyhow::Result<Arc<dyn Client>> {
        let kv = KvClient::new(self.channel(server).await?);
        Ok(Arc::new(EtcdClient { env: self.env.clone(), kv }))
    }

    async fn prepare(&mut self, keys: usize) -> anyhow::Result<()> {
        let client = self.connect(0).await?;
        for key in 0..keys {
            client.write(key, 0).await?;
        }
        Ok(())
    }

    fn processes(&self) -> Vec<u32> {
        self.members.iter().filter_map(|member| member.child.as_ref()?.id()).collect()
    }

    async fn leader(&self) -> anyhow::Result<(usize, u64)> {
        for index in 0..self.members.len() {
            let status = self.status(index).await?;
            let own = status.header.map(|header| header.member_id).unwrap_or_default();
            if status.leader != 0 && own == status.leader {
                return Ok((index, status.raft_term));
            }
        }
        bail!("no etcd server leads")
    }

    async fn kill(&mut self, server: usize) -> anyhow::Result<()> {
        match self.members[server].child.take() {
            Some(mut child) => Ok(child.kill().await?),
            None => bail!("{} does not run", self.members[server].name),
        }
    }

    fn start(&mut self, server: usize) -> anyhow::Result<()> {
        self.spawn(server)
    }

    async fn until_caught_up(&mut self, server: usize) -> anyhow::Result<()> {
        self.until_serving(server).await
    }

    fn folder(&self) -> &Path {
        &self.folder
    }
}
