//! Agents: enrolment, renewal, logs; sessions are in `session`.

use cara_core::command::{EnrollNode, RenewCertificate};
use cara_core::{Answer, Command, NodeId, Rejected};
use cara_proto::agent::agent_server::Agent;
use cara_proto::agent::{
    AgentFrame, EnrollRequest, EnrollResponse, LogChunk, LogsDone, RenewRequest, RenewResponse, ServerFrame,
};
use cara_transport::{JoinToken, Role, Unanswered};
use futures_util::stream::BoxStream;
use tonic::{Request, Response, Status, Streaming};

use super::{check_leads, peer, preflight, session};
use crate::api::SharedApi;
use crate::error::{ApiError, chain};
use crate::setup::record;

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
        let hash = JoinToken::hash(&request.token);
        let node = match api.read_local(|state| state.node_by_name(&request.node_name).map(|n| n.id.clone())) {
            Some(declared) => declared,
            None => NodeId::new(format!("nd_{}", cara_env::hex(&*api.env.rng, 12))),
        };
        let ca = crate::server::open_ca(api)?;
        let issued = ca
            .issue(&api.env, &Role::Node(node.to_string()), &request.csr, &[])
            .map_err(|error| ApiError::invalid(chain(&error)))?;
        if request.preflight {
            return preflight::check(api, request, &hash, &issued).await;
        }
        cara_env::point("enrol.signed", || format!("node={}", request.node_name)).await;
        let command = EnrollNode {
            token_hash: hash,
            node,
            name: request.node_name.clone(),
            address: request.address.clone(),
            certificate: record(&issued),
            facts: api.known_facts(request.facts.as_ref()),
        };
        let reply = api.propose("join-token", "", Command::EnrollNode(command)).await?;
        let Answer::Certified(certified) = reply.answer else {
            return Err(ApiError::Internal("the answer to EnrollNode has no certificate".into()));
        };
        Ok(EnrollResponse {
            node_id: certified.node.to_string(),
            cluster_id: api.identity.cluster_id.clone(),
            not_after_ms: certified.certificate.not_after_ms,
            certificate_pem: certified.certificate.pem,
            ca_pem: api.identity.ca_pem.clone(),
            servers: api.server_addresses(),
            // No time: who asks again after a lost answer gets the very same.
            ..EnrollResponse::default()
        })
    }

    async fn renew_for(&self, node: NodeId, fingerprint: String, csr: &[u8]) -> Result<RenewResponse, ApiError> {
        let api = &self.api;
        let issued = crate::server::open_ca(api)?
            .issue(&api.env, &Role::Node(node.to_string()), csr, &[])
            .map_err(|error| ApiError::invalid(chain(&error)))?;
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
        Ok(RenewResponse {
            not_after_ms: certified.certificate.not_after_ms,
            certificate_pem: certified.certificate.pem,
            ca_pem: api.identity.ca_pem.clone(),
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

    type SessionStream = BoxStream<'static, Result<ServerFrame, Status>>;

    async fn session(&self, request: Request<Streaming<AgentFrame>>) -> Result<Response<Self::SessionStream>, Status> {
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
