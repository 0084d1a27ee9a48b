//! Nodes that come back, are shut out, or turn up twice.

use cara_control::pki::{new_request, request_for};
use cara_core::FEATURE_LEVEL;
use cara_proto::agent::agent_client::AgentClient;
use cara_proto::agent::server_frame::Frame as Down;
use cara_proto::agent::{
    AgentFrame, CheckIdentityRequest, EnrollRequest, EnrollResponse, Hello, Instance, Present, RenewRequest,
    ServerFrame, agent_frame::Frame as Up,
};
use cara_proto::node::Facts;
use cara_transport::{Identity, JoinToken, Tls};
use serde_json::{Value, json};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::transport::Channel;
use tonic::{Status, Streaming};

use crate::harness::{DEADLINE, Server};

fn code(status: &Status) -> String {
    status.metadata().get(cara_proto::CODE_KEY).map(|v| v.to_str().unwrap().to_owned()).unwrap_or_default()
}

fn hint(status: &Status) -> String {
    status.metadata().get(cara_proto::HINT_KEY).map(|v| v.to_str().unwrap().to_owned()).unwrap_or_default()
}

/// A machine with an identity.
struct Machine {
    id: String,
    identity: Identity,
}

impl Machine {
    /// With a token's secret; `was` is the node that it says to have been.
    async fn enrol(server: &Server, secret: &str, name: &str, was: &str) -> Result<Machine, Status> {
        let (key_pem, csr) = new_request().unwrap();
        let tls = cara_transport::pinned(&server.env, &server.founded.ca_fingerprint, true);
        let channel = cara_transport::connect(&server.env, &server.address, tls, DEADLINE).await.unwrap();
        let request = EnrollRequest {
            token: secret.into(),
            node_name: name.into(),
            csr,
            node_id: was.into(),
            ..EnrollRequest::default()
        };
        let EnrollResponse { node_id, certificate_pem, ca_pem, .. } =
            AgentClient::new(channel).enroll(request).await?.into_inner();
        Ok(Machine { id: node_id, identity: Identity { certificate_pem, key_pem, ca_pem } })
    }

    async fn new(server: &Server, name: &str) -> Machine {
        let minted = server.post("/api/v1/nodes/join-tokens", &json!({})).await.json();
        Machine::enrol(server, &secret(&minted), name, "").await.unwrap()
    }

    async fn dial(&self, server: &Server) -> AgentClient<Channel> {
        let tls = Tls::new(&server.env, &self.identity).unwrap();
        let channel = cara_transport::connect(&server.env, &server.address, tls.client(), DEADLINE).await.unwrap();
        AgentClient::new(channel)
    }

    /// Opens a session as this process, which says who had the last one.
    async fn open(&self, server: &Server, id: &str, last: (&str, u64)) -> Result<Session, Status> {
        let (frames, outgoing) = mpsc::channel(16);
        let instance = Instance { id: id.into(), last_id: last.0.into(), last_epoch: last.1 };
        let facts = Facts { hostname: format!("{id}.lan"), ..Facts::default() };
        let hello = Hello {
            node_id: self.id.clone(),
            feature_level: FEATURE_LEVEL,
            facts: Some(facts),
            instance: Some(instance),
            ..Hello::default()
        };
        frames.send(AgentFrame { frame: Some(Up::Hello(hello)) }).await.unwrap();
        let mut answers = self.dial(server).await.session(ReceiverStream::new(outgoing)).await?.into_inner();
        match answers.message().await?.and_then(|first: ServerFrame| first.frame) {
            Some(Down::Welcome(welcome)) => Ok(Session { epoch: welcome.epoch, frames, answers }),
            other => panic!("{other:?}"),
        }
    }

    /// A renewed certificate for the same key.
    async fn renew(&self, server: &Server) -> Result<Identity, Status> {
        let (_, csr) = request_for(&self.identity.key_pem).unwrap();
        let renewed = self.dial(server).await.renew(RenewRequest { csr }).await?.into_inner();
        let Identity { key_pem, ca_pem, .. } = &self.identity;
        let (key_pem, ca_pem) = (key_pem.clone(), ca_pem.clone());
        Ok(Identity { certificate_pem: renewed.certificate_pem, key_pem, ca_pem })
    }

    async fn check(&self, server: &Server) -> Result<bool, Status> {
        let answer = self.dial(server).await.check_identity(CheckIdentityRequest {}).await?.into_inner();
        assert_eq!(answer.node_id, self.id);
        Ok(answer.current)
    }
}

struct Session {
    epoch: u64,
    frames: mpsc::Sender<AgentFrame>,
    answers: Streaming<ServerFrame>,
}

impl Session {
    /// The next frame that fits.
    async fn hears<T>(&mut self, server: &Server, fits: impl Fn(Down) -> Option<T>) -> T {
        let waiting = async {
            loop {
                let frame = self.answers.message().await.unwrap().expect("the session goes on").frame;
                if let Some(found) = frame.and_then(&fits) {
                    return found;
                }
            }
        };
        cara_env::timeout(&*server.env.clock, DEADLINE, waiting).await.expect("it comes")
    }
}

fn secret(minted: &Value) -> String {
    minted["token"].as_str().unwrap().parse::<JoinToken>().unwrap().secret
}

async fn certificate(server: &Server, node: &str) -> Value {
    server.get(&format!("/api/v1/nodes/{node}")).await.json()["status"]["certificate"].clone()
}

const REENROLL: &str = "/api/v1/nodes/n1/reenroll-token";

#[tokio::test]
async fn a_wiped_machine_comes_back_under_its_name_with_all_it_had() {
    let server = Server::start().await;
    let first = Machine::new(&server, "n1").await;
    server.put("/api/v1/nodes/n1/labels", &json!({ "site": "hall-b" })).await;
    let ordinary = server.post("/api/v1/nodes/join-tokens", &json!({})).await.json();
    let refused = Machine::enrol(&server, &secret(&ordinary), "n1", "").await.err().unwrap();
    assert_eq!(code(&refused), "node-name-taken");
    assert!(hint(&refused).contains("caractrl nodes reenroll"), "{}", hint(&refused));

    let answer = server.post(REENROLL, &json!({})).await;
    assert_eq!(answer.status, 201);
    let minted = answer.json();
    assert_eq!(minted["node_id"], first.id.as_str());
    assert_eq!(minted["ca_fingerprint"], server.founded.ca_fingerprint.as_str());
    let command = minted["agent_command"].as_str().unwrap();
    assert!(command.starts_with("cara-agent reenroll ") && command.ends_with(minted["token"].as_str().unwrap()));
    assert!(minted["expires_at"].as_str().unwrap().ends_with('Z'));

    // The new machine calls itself something else: the token knows who it is.
    let back = Machine::enrol(&server, &secret(&minted), "whatever", "").await.unwrap();
    assert_eq!(back.id, first.id);
    let node = server.get("/api/v1/nodes/n1").await.json();
    assert_eq!(
        (&node["metadata"]["labels"]["site"], &node["status"]["certificate"]["generation"]),
        (&json!("hall-b"), &json!(2))
    );
    assert_eq!(code(&first.open(&server, "a", ("", 0)).await.err().unwrap()), "certificate-unknown");
    back.open(&server, "b", ("", 0)).await.unwrap();
    let spent = Machine::enrol(&server, &secret(&minted), "n1", "").await.err().unwrap();
    assert_eq!(code(&spent), "join-token-spent");
    server.stop().await;
}

#[tokio::test]
async fn a_token_brings_back_its_own_node_and_a_retry_shows_the_same_one() {
    let server = Server::start().await;
    let (first, second) = (Machine::new(&server, "n1").await, Machine::new(&server, "n2").await);
    let mint = |path| server.call("POST", path, &[("idempotency-key", "k1")], "");
    let (once, again) = (mint(REENROLL).await.json(), mint(REENROLL).await.json());
    assert_eq!(once, again);
    let other = mint("/api/v1/nodes/n2/reenroll-token").await;
    assert_eq!((other.status, other.code().as_str()), (409, "request-id-reused"));
    let wrong = Machine::enrol(&server, &secret(&once), "n2", &second.id).await.err().unwrap();
    assert_eq!(code(&wrong), "join-token-node");
    let tokens = server.get("/api/v1/nodes/join-tokens").await.json();
    let of_return = tokens["items"].as_array().unwrap().iter().find(|token| token["purpose"] == "reenroll").unwrap();
    assert_eq!(of_return["state"], "unused", "a refused attempt spends nothing");
    assert_eq!(Machine::enrol(&server, &secret(&once), "", &first.id).await.unwrap().id, first.id);
    server.stop().await;
}

#[tokio::test]
async fn only_a_node_that_is_there_and_has_joined_can_come_back_or_be_shut_out() {
    let server = Server::start().await;
    let manifest = json!({ "apiVersion": "caravanserai/v1", "kind": "Node", "metadata": { "name": "n1" } });
    server.post("/api/v1/nodes", &manifest).await;
    for verb in ["reenroll-token", "revoke-cert"] {
        let declared = server.post(&format!("/api/v1/nodes/n1/{verb}"), &json!({})).await;
        assert_eq!((declared.status, declared.code().as_str()), (409, "node-not-enrolled"), "{verb}");
        let missing = server.post(&format!("/api/v1/nodes/n9/{verb}"), &json!({})).await;
        assert_eq!((missing.status, missing.code().as_str()), (404, "unknown-node"), "{verb}");
    }
    server.stop().await;
}

#[tokio::test]
async fn a_revoked_node_is_out_at_once_and_comes_back_only_by_being_enrolled_again() {
    let server = Server::start().await;
    let machine = Machine::new(&server, "n1").await;
    let mut session = machine.open(&server, "a", ("", 0)).await.unwrap();
    let answer = server.post("/api/v1/nodes/n1/revoke-cert", &json!({})).await;
    assert_eq!((answer.status, &answer.json()["status"]["certificate"]["state"]), (200, &json!("revoked")));
    let is_goodbye = |frame| if let Down::Goodbye(goodbye) = frame { Some(goodbye.code) } else { None };
    assert_eq!(session.hears(&server, is_goodbye).await, "revoked");
    assert_eq!(server.post("/api/v1/nodes/n1/revoke-cert", &json!({})).await.status, 200, "done already is done");
    let refusals = [
        code(&machine.renew(&server).await.err().unwrap()),
        code(&machine.check(&server).await.err().unwrap()),
        code(&machine.open(&server, "b", ("a", session.epoch)).await.err().unwrap()),
    ];
    assert_eq!(refusals, ["certificate-revoked"; 3]);
    let minted = server.post(REENROLL, &json!({})).await.json();
    let back = Machine::enrol(&server, &secret(&minted), "", &machine.id).await.unwrap();
    back.open(&server, "b", ("a", session.epoch)).await.unwrap();
    assert_eq!(certificate(&server, "n1").await["state"], "ok");
    server.stop().await;
}

#[tokio::test]
async fn a_renewed_certificate_can_be_asked_about_and_the_old_one_works_until_it_is_used() {
    let server = Server::start().await;
    let old = Machine::new(&server, "n1").await;
    assert!(old.check(&server).await.unwrap());
    let new = Machine { id: old.id.clone(), identity: old.renew(&server).await.unwrap() };
    assert!(new.check(&server).await.unwrap());
    assert!(!old.check(&server).await.unwrap(), "accepted, and not the newest");
    let again = old.renew(&server).await.unwrap();
    assert_eq!(again.certificate_pem, new.identity.certificate_pem, "the answer was lost: the same one again");
    new.open(&server, "a", ("", 0)).await.unwrap();
    assert_eq!(code(&old.check(&server).await.err().unwrap()), "certificate-unknown");
    server.stop().await;
}

#[tokio::test]
async fn a_second_machine_with_a_copy_is_refused_and_the_first_keeps_its_session() {
    let server = Server::start().await;
    let machine = Machine::new(&server, "n1").await;
    let mut first = machine.open(&server, "a", ("", 0)).await.unwrap();
    let copied = ("a", first.epoch);
    let held = machine.open(&server, "b", copied).await.err().unwrap();
    assert_eq!((held.code(), code(&held).as_str()), (tonic::Code::Unavailable, "session-held"));
    let is_challenge = |frame| if let Down::Challenge(challenge) = frame { Some(challenge.number) } else { None };
    let number = first.hears(&server, is_challenge).await;
    first.frames.send(AgentFrame { frame: Some(Up::Present(Present { number })) }).await.unwrap();
    let refused = async {
        loop {
            let refused = machine.open(&server, "b", copied).await.err().unwrap();
            if code(&refused) != "session-held" {
                return refused;
            }
        }
    };
    let refused = cara_env::timeout(&*server.env.clock, DEADLINE, refused).await.unwrap();
    assert_eq!((refused.code(), code(&refused).as_str()), (tonic::Code::PermissionDenied, "identity-cloned"));
    assert!(hint(&refused).contains("node of its own") && hint(&refused).contains("nodes reenroll"));

    let node = server.get("/api/v1/nodes/n1").await.json();
    assert_eq!(node["status"]["session"]["epoch"], first.epoch);
    let conditions = node["status"]["conditions"].as_array().unwrap();
    let identity = conditions.iter().find(|condition| condition["type"] == "Identity").unwrap();
    assert_eq!(identity["reason"], "Cloned");
    assert!(identity["message"].as_str().unwrap().contains("b.lan"), "{identity}");
    let events = server.get("/api/v1/nodes/n1/events").await.json();
    assert!(events["items"][0]["reason"].as_str().unwrap().contains("b.lan"), "{events}");

    // The first one reconnects although its old stream is open still, and restarts in order: both at once.
    let Session { epoch, frames, answers } = machine.open(&server, "a", ("a", first.epoch)).await.unwrap();
    drop(frames);
    server.until("/api/v1/nodes/n1", |node| node["status"]["connection"] == "offline").await;
    drop(answers);
    machine.open(&server, "c", ("a", epoch)).await.unwrap();
    server.stop().await;
}
