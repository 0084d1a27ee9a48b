//! A machine that does what a test says: enrols, keeps a session, hears desired sets, reports.

use std::time::Duration;

use cara_core::FEATURE_LEVEL;
use cara_proto::agent::agent_client::AgentClient;
use cara_proto::agent::{
    AgentFrame, Desired, EnrollRequest, Heartbeat, HeldVolume, Hello, Report, VolumeRemoval, agent_frame::Frame as Up,
    server_frame::Frame as Down,
};
use cara_proto::workload::{Assignment, Container, Status, TransferStatus};
use cara_transport::{Identity, JoinToken, Tls};
use serde_json::json;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;

use crate::harness::{DEADLINE, Server};

/// A node's agent with an open session.
pub struct Agent {
    pub id: String,
    pub name: String,
    pub channel: Channel,
    tls: Tls,
    hello: Hello,
    env: cara_env::Env,
    frames: mpsc::Sender<AgentFrame>,
    desired: watch::Receiver<Option<Desired>>,
}

impl Agent {
    /// Enrols as `name` and opens a session. Its address is `<name>.lan`, that for its volumes `<name>.lan:7444`.
    pub async fn join(server: &Server, name: &str) -> Agent {
        Agent::join_with(server, name, |_| {}).await
    }

    /// The same with another first word.
    pub async fn join_with(server: &Server, name: &str, change: impl FnOnce(&mut Hello)) -> Agent {
        let minted = server.post("/api/v1/nodes/join-tokens", &json!({})).await.json();
        let token: JoinToken = minted["token"].as_str().unwrap().parse().unwrap();
        let (key_pem, csr) = cara_control::pki::new_request().unwrap();
        let tls = cara_transport::pinned(&server.env, &server.founded.ca_fingerprint, true);
        let channel = cara_transport::connect(&server.env, &server.address, tls, DEADLINE).await.unwrap();
        let address = format!("{name}.lan");
        let request =
            EnrollRequest { token: token.secret, node_name: name.into(), csr, address, ..EnrollRequest::default() };
        let enrolled = AgentClient::new(channel).enroll(request).await.unwrap().into_inner();
        let identity = Identity { certificate_pem: enrolled.certificate_pem, key_pem, ca_pem: enrolled.ca_pem };
        let tls = Tls::new(&server.env, &identity).unwrap();
        let mut hello = Hello {
            node_id: enrolled.node_id,
            volume_address: format!("{name}.lan:7444"),
            feature_level: FEATURE_LEVEL,
            ..Hello::default()
        };
        change(&mut hello);
        Agent::open(server, name, tls, hello).await
    }

    async fn open(server: &Server, name: &str, tls: Tls, hello: Hello) -> Agent {
        let channel = cara_transport::connect(&server.env, &server.address, tls.client(), DEADLINE).await.unwrap();
        let id = hello.node_id.clone();
        let (frames, outgoing) = mpsc::channel(16);
        frames.send(AgentFrame { frame: Some(Up::Hello(hello.clone())) }).await.unwrap();
        let mut answers =
            AgentClient::new(channel.clone()).session(ReceiverStream::new(outgoing)).await.unwrap().into_inner();
        let (desired_in, desired) = watch::channel(None);
        drop(cara_env::spawn(async move {
            while let Ok(Some(frame)) = answers.message().await {
                if let Some(Down::Desired(desired)) = frame.frame {
                    desired_in.send_replace(Some(desired));
                }
            }
        }));
        let agent = Agent { id, name: name.into(), channel, tls, hello, env: server.env.clone(), frames, desired };
        let (beats, env) = (agent.frames.downgrade(), agent.env.clone());
        drop(cara_env::spawn(async move {
            for sequence in 1.. {
                env.clock.sleep(Duration::from_millis(500)).await;
                let Some(beats) = beats.upgrade() else { return };
                drop(
                    beats
                        .send(AgentFrame { frame: Some(Up::Heartbeat(Heartbeat { sequence, ..Heartbeat::default() })) })
                        .await,
                );
            }
        }));
        agent
    }

    /// Says goodbye: the session ends in order, and the node is offline. What is needed to come back.
    pub async fn leave(self, server: &Server) -> impl AsyncFnOnce(&Server) -> Agent {
        let Agent { name, tls, hello, frames, .. } = self;
        drop(frames);
        let path = format!("/api/v1/nodes/{name}");
        server.until(&path, |node| node["status"]["connection"] == "offline").await;
        async move |server: &Server| Agent::open(server, &name, tls, hello).await
    }

    /// Opens another session with this server, which leads now.
    pub async fn turn_to(self, server: &Server) -> Agent {
        let Agent { name, tls, hello, .. } = self;
        Agent::open(server, &name, tls, hello).await
    }

    /// Opens another session and says this feature level.
    pub async fn upgrade(self, server: &Server, feature_level: u32) -> Agent {
        let Agent { name, tls, hello, .. } = self;
        Agent::open(server, &name, tls, Hello { feature_level, ..hello }).await
    }

    /// The newest desired set, once it fits.
    pub async fn told(&self, fits: impl Fn(&[Assignment]) -> bool) -> Vec<Assignment> {
        let mut desired = self.desired.clone();
        let waiting = desired.wait_for(|set| set.as_ref().is_some_and(|set| fits(&set.assignments)));
        let found = cara_env::timeout(&*self.env.clock, DEADLINE, waiting).await;
        let found = found.map(|set| set.unwrap().clone().unwrap().assignments);
        found.unwrap_or_else(|_| panic!("{} was never told so, but {:#?}", self.name, self.desired.borrow()))
    }

    /// The assignment of a workload, once it has this mode.
    pub async fn told_to(&self, mode: &str, name: &str) -> Assignment {
        let fits = |a: &Assignment| a.name == name && a.mode == mode;
        let set = self.told(|set| set.iter().any(fits)).await;
        set.into_iter().find(fits).unwrap()
    }

    /// The volumes that it is to remove, once there are so many.
    pub async fn told_to_remove(&self, count: usize) -> Vec<VolumeRemoval> {
        let mut desired = self.desired.clone();
        let waiting = desired.wait_for(|set| set.as_ref().is_some_and(|set| set.removals.len() == count));
        let found = cara_env::timeout(&*self.env.clock, DEADLINE, waiting).await;
        found.unwrap_or_else(|_| panic!("{} was never told so", self.name)).unwrap().clone().unwrap().removals
    }

    pub async fn report(&self, report: Report) {
        self.frames.send(AgentFrame { frame: Some(Up::Report(report)) }).await.unwrap();
    }

    /// Reports one workload.
    pub async fn says(&self, status: Status) {
        self.report(Report { statuses: vec![status], ..Report::default() }).await;
    }

    /// Reports one workload as removed, with its volume kept.
    pub async fn removed(&self, uid: &str, held: Vec<HeldVolume>) {
        let set = self.desired.borrow().clone().unwrap_or_default().assignments;
        let grants = set.into_iter().filter(|a| a.uid == uid).map(|a| (a.uid, a.generation));
        let removed_generations = grants.collect();
        self.report(Report { removed: vec![uid.to_owned()], removed_generations, held, ..Report::default() }).await;
    }
}

/// A status of an assignment. One that runs has a container.
pub fn status(of: &Assignment, phase: &str) -> Status {
    let container =
        Container { service: "app".into(), id: "c1".into(), state: "running".into(), ..Container::default() };
    Status {
        uid: of.uid.clone(),
        generation: of.generation,
        spec_revision: of.spec_revision,
        phase: phase.into(),
        containers: if phase == "Running" { vec![container] } else { Vec::new() },
        ..Status::default()
    }
}

/// The target's word that it has image and network, and how far its transfer is.
pub fn ready(of: &Assignment, transfer: Option<TransferStatus>) -> Status {
    Status { ready: true, transfer, ..status(of, "Pending") }
}
