//! Servers' certificates and the replacement of the CA: what the leader signs and records, and how a server asks it.

use cara_core::command::{AdvanceCa, ConfirmServer, RenewServer, RotateCa, TrustCa};
use cara_core::{Answer, Command, NodeId, Rejected, ServerId};
use cara_proto::cluster::cluster_client::ClusterClient;
use cara_proto::cluster::{AttestRequest, RenewServerRequest};
use cara_transport::Role;

use super::rest::Asker;
use super::{Api, Leader};
use crate::error::{ApiError, chain};
use crate::pki;
use crate::setup::{ca_fingerprint, hosts_of, record};

/// Hosts that a server may ask for beside its address: its names on a few networks.
const HOSTS_MAX: usize = 16;

/// A server's next certificate.
pub struct Renewed {
    /// PEM.
    pub certificate_pem: String,
    /// The number of the CA that signed it.
    pub ca: u64,
    /// Log index at which it was recorded.
    pub revision: u64,
}

/// What a server says of itself.
#[derive(Debug, Clone)]
pub struct Attested {
    /// The newest CA that it trusts.
    pub trusts: u64,
    /// The certificate that it uses.
    pub fingerprint: String,
}

impl Api {
    /// This server's next certificate, from whoever leads.
    ///
    /// # Errors
    /// When there is no leader, or it refuses.
    pub async fn ask_for_certificate(
        &self,
        csr: Vec<u8>,
        ca: u64,
        presented: &str,
        hosts: Vec<String>,
    ) -> Result<Renewed, ApiError> {
        let request = RenewServerRequest { csr, ca, hosts };
        match self.find_leader(self.config.request_deadline).await? {
            Leader::Here => self.sign_for_server(self.identity.server_id, presented, request).await,
            Leader::At(address) => {
                let call = |mut client: ClusterClient<_>| async move { client.renew_server(request).await };
                let answer = self.forwarder.call(&address, self.config.request_deadline, call).await?;
                let (certificate_pem, ca, revision) = (answer.certificate_pem, answer.ca, answer.revision);
                Ok(Renewed { certificate_pem, ca, revision })
            }
            Leader::None => Err(ApiError::NotLeader { leader: None }),
        }
    }

    /// Signs and records a server's next certificate. Only the leader can.
    ///
    /// # Errors
    /// When there is no such server, or another renewal was first.
    pub async fn sign_for_server(
        &self,
        id: u64,
        presented: &str,
        request: RenewServerRequest,
    ) -> Result<Renewed, ApiError> {
        let known = self.read_local(|state| {
            state.server(ServerId(id)).map(|server| (server.address.clone(), server.certificate.fingerprint.clone()))
        });
        let (address, current) = known.ok_or_else(|| Rejected::UnknownServer { server: id.to_string() })?;
        let mut hosts = hosts_of(&[&address, "localhost", "127.0.0.1"]);
        for host in request.hosts.into_iter().take(HOSTS_MAX) {
            if !hosts.contains(&host) {
                hosts.push(host);
            }
        }
        let issued = crate::server::open_ca(self)?
            .issue(&self.env, &Role::Server(id), &request.csr, &hosts)
            .map_err(|error| ApiError::invalid(chain(&error)))?;
        let command = RenewServer {
            server: ServerId(id),
            presented: presented.to_owned(),
            presented_ca: request.ca,
            expect_fingerprint: current,
            certificate: record(&issued),
        };
        let reply = self.propose(&format!("server:{id}"), "", Command::RenewServer(command)).await?;
        let Answer::Server(server) = reply.answer else {
            return Err(ApiError::Internal("the answer to RenewServer names no server".into()));
        };
        let certificate = server.certificate;
        Ok(Renewed { certificate_pem: certificate.pem, ca: certificate.ca, revision: reply.revision.0 })
    }

    /// Tells whoever leads whom this server trusts and which certificate it uses. Returns the log index at which that was
    /// recorded.
    ///
    /// # Errors
    /// When there is no leader, or it refuses.
    pub async fn attest_to_leader(&self, attested: Attested) -> Result<u64, ApiError> {
        match self.find_leader(self.config.request_deadline).await? {
            Leader::Here => self.record_attested(self.identity.server_id, attested).await,
            Leader::At(address) => {
                let request = AttestRequest { trusts: attested.trusts, fingerprint: attested.fingerprint };
                let call = |mut client: ClusterClient<_>| async move { client.attest(request).await };
                Ok(self.forwarder.call(&address, self.config.request_deadline, call).await?.revision)
            }
            Leader::None => Err(ApiError::NotLeader { leader: None }),
        }
    }

    /// Records what a server says of itself. Only the leader can.
    ///
    /// # Errors
    /// When there is no such server, or it names a CA that there is not.
    pub async fn record_attested(&self, id: u64, attested: Attested) -> Result<u64, ApiError> {
        let (server, actor) = (ServerId(id), format!("server:{id}"));
        let trust = TrustCa { server, node: NodeId::default(), ca: attested.trusts };
        let trusted = self.propose(&actor, "", Command::TrustCa(trust)).await?;
        let confirm = ConfirmServer { server, fingerprint: attested.fingerprint };
        let confirmed = self.propose(&actor, "", Command::ConfirmServer(confirm)).await?;
        Ok(trusted.revision.0.max(confirmed.revision.0))
    }

    /// The CAs that are trusted now, PEM, and the number of that answer.
    pub fn trusted(&self) -> (String, u64) {
        self.read_local(|state| state.cluster().map(|of| (of.bundle_pem(), of.trust_epoch))).unwrap_or_default()
    }

    /// The newest CA, if it is among those that the node's agent says it trusts, and that is news.
    pub fn newly_trusted(&self, node: &NodeId, trusted: &[String]) -> Option<u64> {
        self.read_local(|state| {
            let cluster = state.cluster().filter(|_| state.supports(cara_core::Feature::Lifecycle))?;
            let certificate = state.node(node)?.certificate.as_ref().filter(|of| of.revoked_at_ms.is_none())?;
            let newest = cluster.rotation.as_ref().map_or(&cluster.ca_cert_pem, |next| &next.certificate_pem);
            let is_news = certificate.newest_trusted() < cluster.newest_ca();
            (is_news && trusted.contains(&ca_fingerprint(newest))).then(|| cluster.newest_ca())
        })
    }

    /// Records that a node trusts this CA.
    pub async fn record_trust(&self, node: &NodeId, ca: u64) {
        let command = TrustCa { server: ServerId(0), node: node.clone(), ca };
        if let Err(error) = self.propose(&format!("node:{node}"), "", Command::TrustCa(command)).await {
            tracing::debug!(%node, %error, "what the agent trusts is not recorded; it says so again");
        }
    }

    /// Makes the next CA and begins to replace the present one.
    ///
    /// # Errors
    /// While it is being replaced already, or before every server knows how.
    pub async fn rotate_ca(&self, asker: &Asker) -> Result<(), ApiError> {
        if self.was_done(asker, "RotateCa") {
            return Ok(());
        }
        let signing = crate::server::open_ca(self)?;
        let expect_ca = self.read_local(|state| state.cluster().map_or(1, |cluster| cluster.ca_number()));
        let next = signing.next(&self.env, expect_ca + 1).map_err(|error| ApiError::Internal(chain(&error)))?;
        cara_env::point("ca.made", || format!("ca={}", expect_ca + 1)).await;
        let sealed_under = self.sealed_under();
        let sealing = crate::server::sealing_key(self, &sealed_under)?;
        let command = RotateCa {
            certificate_pem: next.certificate_pem,
            key_sealed: pki::seal(&*self.env.rng, &sealing, next.key_pem.as_bytes()),
            cross_pem: next.cross_pem,
            expect_ca,
            sealing_key: sealed_under,
        };
        self.propose(&asker.actor, &asker.request_id, Command::RotateCa(command)).await.map(drop)
    }

    /// Takes the next step without the nodes that hold it back; their certificates are revoked.
    ///
    /// # Errors
    /// When nothing is being replaced, or a server holds it back.
    pub async fn force_ca(&self, asker: &Asker) -> Result<(), ApiError> {
        let expect_epoch = self.read_local(|state| state.cluster().map_or(0, |cluster| cluster.trust_epoch));
        let command = AdvanceCa { expect_epoch, force: true };
        self.propose(&asker.actor, &asker.request_id, Command::AdvanceCa(command)).await.map(drop)
    }
}
