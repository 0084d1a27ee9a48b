//! Servers: one that joins, and requests that others hand to the leader.

use axum::Router;
use cara_core::command::{ApiTokenUse, PutServer};
use cara_core::model::Server;
use cara_core::{Answer, Command, FEATURE_LEVEL_MIN, Rejected, ServerId, TokenId};
use cara_proto::cluster::cluster_server::Cluster;
use cara_proto::cluster::{
    AnnounceRequest, AnnounceResponse, AttestRequest, AttestResponse, HoldSealingKeyRequest, HttpPart, HttpRequest,
    JoinRequest, JoinResponse, NoteTokenUseRequest, NoteTokenUseResponse, PullSealingKeyRequest,
    PullSealingKeyResponse, RecoverTokenRequest, RecoverTokenResponse, RenewServerRequest, RenewServerResponse,
};
use cara_transport::{JoinToken, Role};
use futures_util::stream::BoxStream;
use tonic::{Request, Response, Status};

use super::{check_leads, dial_back, peer, server_peer};
use crate::api::actor::Who;
use crate::api::certificates::Attested;
use crate::api::rest::run_forwarded;
use crate::api::{Leader, SharedApi, forward};
use crate::error::ApiError;
use crate::setup::{hosts_of, record};

/// What to do about an address that the leader can't dial.
const UNREACHABLE: &str =
    "give an address with --advertise that the other servers can dial, and open its port; the token is unspent";

/// Serves `cara.cluster.Cluster`.
pub struct ClusterService {
    api: SharedApi,
    rest: Router,
}

impl ClusterService {
    /// Over the API and its REST routes.
    pub fn new(api: SharedApi, rest: Router) -> Self {
        Self { api, rest }
    }

    async fn recover(&self, server: u64, request: RecoverTokenRequest) -> Result<RecoverTokenResponse, ApiError> {
        let api = &self.api;
        if request.handed_on && !api.leads() {
            return Err(ApiError::NotLeader { leader: api.leader_elsewhere() });
        }
        let limit = api.config.request_deadline;
        match api.find_leader(limit).await? {
            Leader::At(address) => {
                let request = RecoverTokenRequest { handed_on: true, ..request };
                api.forwarder.recover_token(&address, request, limit).await
            }
            Leader::Here | Leader::None => {
                let made = api.recover_token(server, &request.request_id).await?;
                Ok(RecoverTokenResponse { token: made.text, token_id: made.view.id, name: made.view.name })
            }
        }
    }

    async fn admit(&self, request: JoinRequest) -> Result<JoinResponse, ApiError> {
        let api = &self.api;
        api.barrier().await?;
        // A server that nobody can dial would be a voter that never answers; better to say so before the token is spent.
        dial_back(api, "server", &request.address, UNREACHABLE).await?;
        let id = api.read_local(|state| state.next_server_id().0); // Never given twice, also after a removal.
        let ca = crate::server::open_ca(api)?;
        let hosts = hosts_of(&[&request.address, "localhost", "127.0.0.1"]);
        let issued = ca
            .issue(&api.env, &Role::Server(id), &request.csr, &hosts)
            .map_err(|error| ApiError::invalid(crate::error::chain(&error)))?;
        cara_env::point("join.signed", || format!("server={}", request.name)).await;
        let command = PutServer {
            server: Server {
                id: ServerId(id),
                name: request.name,
                address: request.address,
                certificate: record(&issued),
                feature_level: request.feature_level.max(FEATURE_LEVEL_MIN),
                ..Server::default()
            },
            token_hash: Some(JoinToken::hash(&request.token)),
        };
        let reply = api.propose("join-token", "", Command::PutServer(command)).await?;
        let Answer::Server(server) = reply.answer else {
            return Err(ApiError::Internal("the answer to PutServer names no server".into()));
        };
        let joined = api.read_local(|state| {
            state.cluster().map(|cluster| JoinResponse {
                ca_pem: cluster.bundle_pem(),
                chain_pem: cluster.chain_pem(),
                trust_epoch: cluster.trust_epoch,
                trusts: cluster.newest_ca(),
                ..JoinResponse::default()
            })
        });
        let (sealing_key, next_sealing_key) = api.sealing_keys_for_newcomer()?;
        Ok(JoinResponse {
            server_id: server.server.0,
            cluster_id: api.identity.cluster_id.clone(),
            certificate_pem: server.certificate.pem,
            ca: server.certificate.ca,
            sealing_key,
            next_sealing_key,
            servers: api.server_addresses(),
            ..joined.unwrap_or_default()
        })
    }
}

#[tonic::async_trait]
impl Cluster for ClusterService {
    async fn join(&self, request: Request<JoinRequest>) -> Result<Response<JoinResponse>, Status> {
        check_leads(&self.api)?;
        let request = request.into_inner();
        // Two that join at once may be given the same id; the state machine lets only one have it.
        for _ in 0..3 {
            match self.admit(request.clone()).await {
                Err(ApiError::Rejected(Rejected::ServerTaken { what, .. })) if what == "id" => {}
                Ok(answer) => return Ok(Response::new(answer)),
                Err(error) => return Err(error.to_status()),
            }
        }
        Err(ApiError::Busy("several servers are joining at once".into()).to_status())
    }

    async fn announce(&self, request: Request<AnnounceRequest>) -> Result<Response<AnnounceResponse>, Status> {
        let id = server_peer(&self.api, &request)?;
        check_leads(&self.api)?;
        let level = request.into_inner().feature_level;
        self.api.record_level(id, level).await.map_err(|error| error.to_status())?;
        Ok(Response::new(AnnounceResponse {}))
    }

    async fn recover_token(
        &self,
        request: Request<RecoverTokenRequest>,
    ) -> Result<Response<RecoverTokenResponse>, Status> {
        let server = server_peer(&self.api, &request)?;
        let request = request.into_inner();
        let recovered = self.recover(server, request).await;
        recovered.map(Response::new).map_err(|error| error.to_status())
    }

    async fn note_token_use(
        &self,
        request: Request<NoteTokenUseRequest>,
    ) -> Result<Response<NoteTokenUseResponse>, Status> {
        let server = server_peer(&self.api, &request)?;
        check_leads(&self.api)?;
        let used = request.into_inner().used.into_iter();
        let used = used.map(|used| ApiTokenUse { token: TokenId::new(used.token_id), at_ms: used.at_ms }).collect();
        let recorded = self.api.record_uses(Who::from(&format!("server:{server}")), used).await;
        recorded.map(|()| Response::new(NoteTokenUseResponse {})).map_err(|error| error.to_status())
    }

    async fn renew_server(
        &self,
        request: Request<RenewServerRequest>,
    ) -> Result<Response<RenewServerResponse>, Status> {
        let id = server_peer(&self.api, &request)?;
        let presented = peer(&self.api, &request)?.fingerprint;
        check_leads(&self.api)?;
        let renewed = self.api.sign_for_server(id, &presented, request.into_inner()).await;
        let renewed = renewed.map_err(|error| error.to_status())?;
        Ok(Response::new(RenewServerResponse {
            certificate_pem: renewed.certificate_pem,
            ca: renewed.ca,
            revision: renewed.revision,
        }))
    }

    async fn attest(&self, request: Request<AttestRequest>) -> Result<Response<AttestResponse>, Status> {
        let id = server_peer(&self.api, &request)?;
        check_leads(&self.api)?;
        let AttestRequest { trusts, fingerprint } = request.into_inner();
        let recorded = self.api.record_attested(id, Attested { trusts, fingerprint }).await;
        recorded.map(|revision| Response::new(AttestResponse { revision })).map_err(|error| error.to_status())
    }

    async fn pull_sealing_key(
        &self,
        request: Request<PullSealingKeyRequest>,
    ) -> Result<Response<PullSealingKeyResponse>, Status> {
        let id = server_peer(&self.api, &request)?;
        let handed_out = self.api.hand_out_key(id, &request.into_inner().key_id);
        handed_out.map(|key| Response::new(PullSealingKeyResponse { key })).map_err(|error| error.to_status())
    }

    async fn hold_sealing_key(
        &self,
        request: Request<HoldSealingKeyRequest>,
    ) -> Result<Response<AttestResponse>, Status> {
        let id = server_peer(&self.api, &request)?;
        check_leads(&self.api)?;
        let recorded = self.api.record_held(id, request.into_inner().key_id).await;
        recorded.map(|revision| Response::new(AttestResponse { revision })).map_err(|error| error.to_status())
    }

    type ForwardStream = BoxStream<'static, Result<HttpPart, Status>>;

    async fn forward(&self, request: Request<HttpRequest>) -> Result<Response<Self::ForwardStream>, Status> {
        server_peer(&self.api, &request)?;
        let answer = run_forwarded(self.rest.clone(), request.into_inner()).await;
        Ok(Response::new(Box::pin(forward::parts_of(answer))))
    }
}
