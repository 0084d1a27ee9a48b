//! A server for the agent's tests: one CA, enrolment, sessions, and a way to misbehave. Each server serves one node; those of
//! one cluster share the CA and the relay.

#![allow(dead_code)] // Each test binary uses its own part.

mod relay;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use cara_env::Env;
use cara_proto::agent::agent_frame::Frame as Up;
use cara_proto::agent::agent_server::{Agent, AgentServer};
use cara_proto::agent::server_frame::Frame as Down;
use cara_proto::agent::*;
use cara_proto::volume::relay_server::RelayServer;
use cara_proto::{CODE_KEY, HINT_KEY, LEADER_KEY};
use cara_transport::{Caller, Identity, JoinToken, Limits, Peer, Role, SERVER_NAME, Tls, fingerprint};
use rcgen::{
    BasicConstraints, CertificateParams, CertificateSigningRequestParams, ExtendedKeyUsagePurpose, IsCa, Issuer,
    KeyPair, SanType,
};
use relay::Relay;
use tokio::sync::{mpsc, watch};
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Code, Request, Response, Status, Streaming};

const INTERVAL_MS: u64 = 50;

/// What the server does.
#[derive(Clone, PartialEq)]
pub enum Behaviour {
    Healthy,
    /// Refuses everything, as with a spent token or a revoked certificate.
    Refuses,
    /// Says that another machine is this node.
    KnowsAnother,
    /// Isn't the leader, but knows who is.
    PointsTo(String),
    /// Opens sessions and acknowledges nothing.
    Mute,
    /// Answers nothing useful.
    Away,
    /// The answers of the next enrolments are lost.
    LosesAnswers(u32),
}

/// What the server has seen.
#[derive(Clone, Default)]
pub struct Seen {
    /// Public keys of enrolment requests.
    pub keys: Vec<Vec<u8>>,
    pub hellos: Vec<Hello>,
    pub heartbeats: u64,
    pub reports: Vec<Report>,
    pub refused: u64,
    /// Answers to challenges.
    pub presents: Vec<u64>,
    pub logs: BTreeMap<String, Vec<u8>>,
    /// By request, with the error of the last chunk.
    pub logs_done: BTreeMap<String, String>,
}

struct Ca {
    pem: String,
    fingerprint: String,
    issuer: Issuer<'static, KeyPair>,
    relay: Relay,
}

struct Inner {
    ca: Arc<Ca>,
    node_id: &'static str,
    behaviour: Mutex<Behaviour>,
    seen: watch::Sender<Seen>,
    /// The current session.
    session: Mutex<Option<mpsc::Sender<Result<ServerFrame, Status>>>>,
}

/// One running server.
pub struct Cluster {
    inner: Arc<Inner>,
    address: String,
    _stop: watch::Sender<bool>,
}

impl Cluster {
    /// A server of a new cluster.
    pub async fn start() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().expect("a key");
        let certificate = params.self_signed(&key).expect("a CA");
        let ca = Ca {
            pem: certificate.pem(),
            fingerprint: fingerprint(certificate.der()),
            issuer: Issuer::new(params, key),
            relay: Relay::default(),
        };
        Self::serve(Arc::new(ca), "nd_1").await
    }

    /// Another server of the same cluster.
    pub async fn another(&self) -> Self {
        Self::serve(self.inner.ca.clone(), self.inner.node_id).await
    }

    /// A server of the same cluster for another node.
    pub async fn for_node(&self, node_id: &'static str) -> Self {
        Self::serve(self.inner.ca.clone(), node_id).await
    }

    async fn serve(ca: Arc<Ca>, node_id: &'static str) -> Self {
        let env = Env::real();
        let key = KeyPair::generate().expect("a key");
        let mut params = CertificateParams::new(vec![SERVER_NAME.to_owned()]).expect("a name");
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
        let leaf = params.signed_by(&key, &ca.issuer).expect("a certificate");
        let identity = Identity { certificate_pem: leaf.pem(), key_pem: key.serialize_pem(), ca_pem: ca.pem.clone() };
        let tls = Tls::new(&env, &identity).expect("usable");
        let inner = Arc::new(Inner {
            ca,
            node_id,
            behaviour: Mutex::new(Behaviour::Healthy),
            seen: watch::Sender::new(Seen::default()),
            session: Mutex::new(None),
        });
        let listener = env.net.listen("127.0.0.1:0").await.expect("a port");
        let address = listener.local_address();
        let service = AgentServer::new(Service(inner.clone()));
        let relay = RelayServer::new(inner.ca.relay.clone());
        let app = tonic::service::Routes::new(service).add_service(relay).into_axum_router();
        let (stop, stopped) = watch::channel(false);
        drop(cara_env::spawn(async move {
            cara_transport::serve(&env, listener, tls, app, Limits::default(), stopped).await;
        }));
        Self { inner, address, _stop: stop }
    }

    pub fn address(&self) -> String {
        self.address.clone()
    }

    pub fn token(&self) -> JoinToken {
        let ca_fingerprint = self.inner.ca.fingerprint.clone();
        JoinToken { secret: "secret".into(), servers: vec![self.address()], ca_fingerprint }
    }

    pub fn set(&self, behaviour: Behaviour) {
        let ends_sessions = behaviour == Behaviour::Away;
        *self.inner.behaviour.lock().expect("no panic") = behaviour;
        if ends_sessions {
            *self.inner.session.lock().expect("no panic") = None;
        }
    }

    pub fn seen(&self) -> Seen {
        self.inner.seen.borrow().clone()
    }

    pub async fn until(&self, what: &str, condition: impl Fn(&Seen) -> bool) {
        let mut seen = self.inner.seen.subscribe();
        let waited = tokio::time::timeout(super::PATIENCE, seen.wait_for(|seen| condition(seen))).await;
        assert!(waited.is_ok(), "{what} did not come");
    }

    pub async fn send(&self, desired: Desired) {
        self.down(Down::Desired(desired)).await;
    }

    pub async fn say(&self, goodbye: Goodbye) {
        self.down(Down::Goodbye(goodbye)).await;
    }

    /// Asks the agent whether it lives.
    pub async fn challenge(&self, number: u64) {
        self.down(Down::Challenge(Challenge { number })).await;
    }

    pub async fn ask_logs(&self, request_id: &str, workload_uid: &str) {
        let request = LogsRequest {
            request_id: request_id.into(),
            workload_uid: workload_uid.into(),
            service: "web".into(),
            ..LogsRequest::default()
        };
        self.down(Down::Logs(request)).await;
    }

    /// Sends a frame in the current session, once there is one.
    async fn down(&self, frame: Down) {
        let waiting = async {
            loop {
                let session = self.inner.session.lock().expect("no panic").clone();
                let frame = ServerFrame { frame: Some(frame.clone()) };
                if let Some(session) = session
                    && session.send(Ok(frame)).await.is_ok()
                {
                    return;
                }
                tokio::time::sleep(Duration::from_millis(5)).await;
            }
        };
        tokio::time::timeout(super::PATIENCE, waiting).await.expect("a session");
    }
}

impl Inner {
    fn note(&self, note: impl FnOnce(&mut Seen)) {
        self.seen.send_modify(note);
    }

    fn refuse(&self) -> Option<Status> {
        let status = |code, text: &str, pairs: &[(&'static str, &str)]| {
            let mut status = Status::new(code, text);
            for (key, value) in pairs {
                status.metadata_mut().insert(*key, value.parse().expect("ascii"));
            }
            status
        };
        let behaviour = self.behaviour.lock().expect("no panic").clone();
        match behaviour {
            Behaviour::Refuses => {
                self.note(|seen| seen.refused += 1);
                let hint = "make a new token with: caractrl nodes join-token";
                let pairs = [(CODE_KEY, "join-token-spent"), (HINT_KEY, hint)];
                Some(status(Code::Unauthenticated, "the join token is spent", &pairs))
            }
            Behaviour::KnowsAnother => {
                self.note(|seen| seen.refused += 1);
                Some(status(Code::PermissionDenied, "a copy", &[(CODE_KEY, "identity-cloned"), (HINT_KEY, "enrol it")]))
            }
            Behaviour::PointsTo(leader) => Some(status(Code::Unavailable, "not the leader", &[(LEADER_KEY, &leader)])),
            Behaviour::Away => Some(status(Code::Unavailable, "away", &[])),
            _ => None,
        }
    }

    fn loses_answer(&self) -> bool {
        let mut behaviour = self.behaviour.lock().expect("no panic");
        match &mut *behaviour {
            Behaviour::LosesAnswers(left) if *left > 0 => {
                *left -= 1;
                true
            }
            _ => false,
        }
    }
}

struct Service(Arc<Inner>);

#[tonic::async_trait]
impl Agent for Service {
    async fn enroll(&self, request: Request<EnrollRequest>) -> Result<Response<EnrollResponse>, Status> {
        if let Some(refusal) = self.0.refuse() {
            return Err(refusal);
        }
        let request = request.into_inner();
        if request.preflight {
            return Ok(Response::new(EnrollResponse::default()));
        }
        let csr = request.csr;
        let mut csr = CertificateSigningRequestParams::from_der(&csr.into()).expect("a CSR");
        use rcgen::PublicKeyData;
        let key = csr.public_key.subject_public_key_info();
        self.0.note(|seen| seen.keys.push(key));
        let uri = Peer::uri("cl_1", &Role::Node(self.0.node_id.into()));
        csr.params.subject_alt_names = vec![SanType::URI(uri.try_into().expect("ascii"))];
        csr.params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        let certificate = csr.signed_by(&self.0.ca.issuer).expect("signed");
        if self.0.loses_answer() {
            return Err(Status::unavailable("the answer is lost"));
        }
        Ok(Response::new(EnrollResponse {
            node_id: self.0.node_id.into(),
            cluster_id: "cl_1".into(),
            certificate_pem: certificate.pem(),
            ca_pem: self.0.ca.pem.clone(),
            ..EnrollResponse::default()
        }))
    }

    async fn renew(&self, _: Request<RenewRequest>) -> Result<Response<RenewResponse>, Status> {
        Err(Status::unavailable("not in these tests"))
    }

    async fn check_identity(
        &self,
        _: Request<CheckIdentityRequest>,
    ) -> Result<Response<CheckIdentityResponse>, Status> {
        Err(Status::unavailable("not in these tests"))
    }

    type SessionStream = ReceiverStream<Result<ServerFrame, Status>>;

    async fn session(&self, request: Request<Streaming<AgentFrame>>) -> Result<Response<Self::SessionStream>, Status> {
        let caller = request.extensions().get::<Caller>().cloned();
        let role = caller.and_then(|c| c.peer).map(|p| p.role);
        assert_eq!(role, Some(Role::Node(self.0.node_id.into())), "the session is mutual TLS");
        if let Some(refusal) = self.0.refuse() {
            return Err(refusal);
        }
        let (down, frames) = mpsc::channel(16);
        let inner = self.0.clone();
        let mut up = request.into_inner();
        drop(cara_env::spawn(async move {
            // The session's only strong sender lives in `inner`, so that `Away` can end it.
            let weak = down.downgrade();
            let welcome = Welcome { epoch: 1, heartbeat_interval_ms: INTERVAL_MS, servers: Vec::new() };
            let _ = down.send(Ok(ServerFrame { frame: Some(Down::Welcome(welcome)) })).await;
            *inner.session.lock().expect("no panic") = Some(down);
            while let Ok(Some(frame)) = up.message().await {
                match frame.frame {
                    Some(Up::Hello(hello)) => inner.note(|seen| seen.hellos.push(hello)),
                    Some(Up::Report(report)) => inner.note(|seen| seen.reports.push(report)),
                    Some(Up::Heartbeat(heartbeat)) => {
                        inner.note(|seen| seen.heartbeats += 1);
                        let mute = *inner.behaviour.lock().expect("no panic") == Behaviour::Mute;
                        let Some(down) = weak.upgrade() else { return };
                        if !mute {
                            let ack = HeartbeatAck { sequence: heartbeat.sequence, ..HeartbeatAck::default() };
                            let _ = down.send(Ok(ServerFrame { frame: Some(Down::Ack(ack)) })).await;
                        }
                    }
                    Some(Up::Present(present)) => inner.note(|seen| seen.presents.push(present.number)),
                    None => {}
                }
            }
        }));
        Ok(Response::new(ReceiverStream::new(frames)))
    }

    async fn logs(&self, request: Request<Streaming<LogChunk>>) -> Result<Response<LogsDone>, Status> {
        let mut chunks = request.into_inner();
        let mut last = LogChunk::default();
        while let Some(chunk) = chunks.message().await? {
            last = chunk.clone();
            self.0.note(|seen| seen.logs.entry(chunk.request_id).or_default().extend(chunk.data));
        }
        self.0.note(|seen| {
            seen.logs_done.insert(last.request_id, last.error);
        });
        Ok(Response::new(LogsDone {}))
    }
}
