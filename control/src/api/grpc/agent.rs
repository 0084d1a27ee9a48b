//! Agents: enrolment, renewal, logs; sessions are in `session`.

use std::time::Duration;

use cara_core::command::{EnrollNode, RenewCertificate};
use cara_core::{Answer, Command, NodeId, Rejected};
use cara_proto::agent::agent_server::Agent;
use cara_proto::agent::{
    AgentFrame, CheckIdentityRequest, CheckIdentityResponse, EnrollRequest, EnrollResponse, LogChunk, LogsDone,
    RenewRequest, RenewResponse, ServerFrame,
};
use cara_transport::{JoinToken, Role, Unanswered};
use futures_util::stream::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use super::{check_leads, peer, preflight, readmit, session};
use crate::api::SharedApi;
use crate::error::ApiError;
use crate::pki::Issued;
use crate::setup::record;

/// An agent that comes during an election waits for its end, at most so long: below the deadline of its call.
const ELECTION_WAIT: Duration = Duration::from_secs(3);

/// Serves `cara.agent.Agent`.
pub struct AgentService {
    api: SharedApi,
}

impl AgentService {
    /// Over the API.
    pub fn new(api: SharedApi) -> Self {
        Self { api }
    }

    async fn admit(&self, request: &EnrollRequest) -> Result<EnrollResponse, ApiError> {
        let api = &self.api;
        api.barrier().await?;
        let bound = readmit::bound_node(api, request)?;
        let known = || api.read_local(|state| state.node_by_name(&request.node_name).map(|n| n.id.clone()));
        let node = match bound.clone().or_else(known) {
            Some(known) => known,
            None => NodeId::new(format!("nd_{}", cara_env::hex(&*api.env.rng, 12))),
        };
        let issued = readmit::sign(api, &node, &request.csr)?;
        if request.preflight {
            return preflight::check(api, request, &JoinToken::hash(&request.token), &issued).await;
        }
        cara_env::point("enrol.signed", || format!("node={}", request.node_name)).await;
        let answer = if bound.is_some() {
            readmit::record_return(api, node, request, &issued).await?
        } else {
            self.record_new(node, request, &issued).await?
        };
        let Answer::Certified(certified) = answer else {
            return Err(ApiError::Internal("the answer to an enrolment has no certificate".into()));
        };
        let (ca_pem, trust_epoch) = api.trusted();
        Ok(EnrollResponse {
            node_id: certified.node.to_string(),
            cluster_id: api.identity.cluster_id.clone(),
            not_after_ms: certified.certificate.not_after_ms,
            certificate_pem: certified.certificate.pem,
            servers: api.server_addresses(),
            ca_pem,
            trust_epoch,
            // No time: who asks again after a lost answer gets the very same.
            ..EnrollResponse::default()
        })
    }

    async fn record_new(&self, node: NodeId, request: &EnrollRequest, issued: &Issued) -> Result<Answer, ApiError> {
        let command = EnrollNode {
            token_hash: JoinToken::hash(&request.token),
            node,
            name: request.node_name.clone(),
            address: request.address.clone(),
            certificate: record(issued),
            facts: self.api.known_facts(request.facts.as_ref()),
        };
        Ok(self.api.propose("join-token", "", Command::EnrollNode(command)).await?.answer)
    }

    async fn renew_for(&self, node: NodeId, fingerprint: String, csr: &[u8]) -> Result<RenewResponse, ApiError> {
        let api = &self.api;
        let issued = readmit::sign(api, &node, csr)?;
        let actor = format!("node:{node}");
        let current = api.read_local(|state| {
            state.node(&node).and_then(|n| n.certificate.as_ref()).map(|c| c.fingerprint.clone()).unwrap_or_default()
        });
        let command = RenewCertificate {
            node,
            presented: fingerprint,
            expect_fingerprint: current,
            certificate: record(&issued),
        };
        let reply = api.propose(&actor, "", Command::RenewCertificate(command)).await?;
        let Answer::Certified(certified) = reply.answer else {
            return Err(ApiError::Internal("the answer to RenewCertificate has no certificate".into()));
        };
        let (ca_pem, trust_epoch) = api.trusted();
        Ok(RenewResponse {
            not_after_ms: certified.certificate.not_after_ms,
            certificate_pem: certified.certificate.pem,
            ca_pem,
            trust_epoch,
        })
    }
}

impl AgentService {
    /// Is the certificate accepted, and is it the newest? Nothing is written: only a session counts as use.
    async fn check(&self, node: NodeId, fingerprint: &str) -> Result<CheckIdentityResponse, ApiError> {
        let api = &self.api;
        api.barrier().await?;
        let now_ms = api.env.clock.wall_ms();
        api.read_local(|state| {
            let known = state.node(&node).ok_or_else(|| Rejected::UnknownNode { node: node.to_string() })?;
            let name = || known.name.clone();
            let Some(certificate) = &known.certificate else {
                return Err(Rejected::NodeNotEnrolled { node: name() }.into());
            };
            if certificate.revoked_at_ms.is_some() {
                return Err(Rejected::CertificateRevoked { node: name() }.into());
            }
            if !certificate.accepts(fingerprint, now_ms) {
                return Err(Rejected::CertificateUnknown { node: name() }.into());
            }
            Ok(CheckIdentityResponse { node_id: node.to_string(), current: certificate.fingerprint == fingerprint })
        })
    }
}

#[tonic::async_trait]
impl Agent for AgentService {
    async fn enroll(&self, request: Request<EnrollRequest>) -> Result<Response<EnrollResponse>, Status> {
        check_leads(&self.api)?;
        let request = request.into_inner();
        // A manifest may declare the node between our look and the entry; then its id is another, and we look again.
        for _ in 0..3 {
            match self.admit(&request).await {
                Err(ApiError::Rejected(Rejected::NodeIdTaken { .. })) => {}
                Ok(answer) => return Ok(Response::new(answer)),
                Err(error) => return Err(error.to_status()),
            }
        }
        Err(ApiError::Busy("the node is being declared at the same time".into()).to_status())
    }

    async fn renew(&self, request: Request<RenewRequest>) -> Result<Response<RenewResponse>, Status> {
        check_leads(&self.api)?;
        let peer = peer(&self.api, &request)?;
        let Role::Node(node) = peer.role else {
            return Err(ApiError::Unauthenticated("this call is for nodes").to_status());
        };
        let csr = request.into_inner().csr;
        let renewed = self.renew_for(NodeId::new(node), peer.fingerprint, &csr).await;
        renewed.map(Response::new).map_err(|error| error.to_status())
    }

    async fn check_identity(
        &self,
        request: Request<CheckIdentityRequest>,
    ) -> Result<Response<CheckIdentityResponse>, Status> {
        check_leads(&self.api)?;
        let peer = peer(&self.api, &request)?;
        let Role::Node(node) = peer.role else {
            return Err(ApiError::Unauthenticated("this call is for nodes").to_status());
        };
        let checked = self.check(NodeId::new(node), &peer.fingerprint).await;
        checked.map(Response::new).map_err(|error| error.to_status())
    }

    type SessionStream = BoxStream<'static, Result<ServerFrame, Status>>;

    async fn session(&self, request: Request<Streaming<AgentFrame>>) -> Result<Response<Self::SessionStream>, Status> {
        // While nobody leads, it waits here: to try one server after the other costs a handshake each time, and thousands of
        // agents who do would leave no room for the election that they wait for.
        drop(self.api.find_leader(ELECTION_WAIT).await);
        check_leads(&self.api)?;
        let peer = peer(&self.api, &request)?;
        let Role::Node(node) = peer.role else {
            return Err(ApiError::Unauthenticated("this call is for nodes").to_status());
        };
        let unanswered = request.extensions().get::<Unanswered>().cloned().unwrap_or_default();
        let frames = request.into_inner();
        let answer = session::open(&self.api, NodeId::new(node), peer.fingerprint, unanswered, frames).await;
        answer.map(Response::new).map_err(|error| error.to_status())
    }

    async fn logs(&self, request: Request<Streaming<LogChunk>>) -> Result<Response<LogsDone>, Status> {
        peer(&self.api, &request)?;
        let mut chunks = request.into_inner();
        let mut reader = None;
        while let Some(chunk) = chunks.message().await? {
            if reader.is_none() {
                let gone = || Status::not_found("nobody waits for this log any more");
                reader = Some(self.api.sessions.take_logs(&chunk.request_id).ok_or_else(gone)?);
            }
            let Some(reader) = &reader else { break };
            let item = if chunk.error.is_empty() { Ok(chunk.data.into()) } else { Err(chunk.error) };
            if reader.send(item).await.is_err() {
                break; // The person has seen enough.
            }
        }
        Ok(Response::new(LogsDone {}))
    }
}
