//! The replacement of the sealing key: what the leader makes and records, and how servers get a key from each other.

use cara_core::command::{HoldSealingKey, Reseal, RotateSealingKey};
use cara_core::{Command, ServerId};
use cara_proto::cluster::cluster_client::ClusterClient;
use cara_proto::cluster::{HoldSealingKeyRequest, PullSealingKeyRequest};
use http::StatusCode;

use super::rest::Asker;
use super::{Api, Leader};
use crate::error::{ApiError, chain};
use crate::pki::{self, SEALING_KEY_LEN};
use crate::sealing_keys::id_of;
use crate::server::{open_ca, sealing_key};

impl Api {
    /// Makes the next sealing key and begins to replace the present one; with `anew` also while it is being replaced already.
    ///
    /// # Errors
    /// While it is being replaced, before every server knows how, or when this server can't open what is sealed now.
    pub async fn rotate_sealing_key(&self, asker: &Asker, anew: bool) -> Result<(), ApiError> {
        if self.was_done(asker, "RotateSealingKey") {
            return Ok(());
        }
        let _one_at_a_time = self.keeper.making_key.lock().await;
        open_ca(self)?; // What the next key is to seal can be opened.
        let key = cara_env::hex(&*self.env.rng, SEALING_KEY_LEN);
        let command = RotateSealingKey {
            key_id: id_of(&key),
            replaces: self.sealing_key_id(),
            server: ServerId(self.identity.server_id),
            anew,
        };
        self.read_local(|state| command.check(state))?;
        let named = self.named_keys();
        let saved = self.keeper.change(|identity| identity.add_sealing_key(key, |id| named.iter().any(|of| of == id)));
        saved.map_err(|error| ApiError::Internal(chain(&error)))?;
        cara_env::point("seal.made", String::new).await;
        let outcome = self.propose(&asker.actor, &asker.request_id, Command::RotateSealingKey(command)).await;
        if matches!(outcome, Ok(_) | Err(ApiError::Rejected(_))) {
            // The log has come past all that this server ever proposed: a key that it doesn't name is named never.
            let named = self.named_keys();
            if let Err(error) =
                self.keeper.change(|of| of.keep_sealing_keys(|id| named.iter().any(|named| named == id)))
            {
                tracing::warn!("a sealing key that came to nothing is still in server.json: {}", chain(&error));
            }
        }
        outcome.map(drop)
    }

    /// What the state says of the key under which the secrets are sealed: its id; empty = the one that was made with the cluster.
    pub fn sealed_under(&self) -> String {
        self.read_local(|state| state.cluster().map(|of| of.sealing_key.clone())).unwrap_or_default()
    }

    /// Id of the key under which the secrets are sealed.
    pub fn sealing_key_id(&self) -> String {
        let id = self.sealed_under();
        if id.is_empty() { self.keeper.look(|identity, _| id_of(&identity.sealing_key)) } else { id }
    }

    /// The ids that the state names, and the first key's, which a cluster names only once it replaces it.
    fn named_keys(&self) -> Vec<String> {
        let mut named = vec![self.sealing_key_id()];
        self.read_local(|state| {
            let Some(cluster) = state.cluster() else { return };
            named.extend(cluster.next_sealing_key.iter().map(|next| next.key_id.clone()));
            named.extend(cluster.former_sealing_keys.iter().cloned());
        });
        named
    }

    /// The present key, and the next one if there is one and it is here: for a server that was let in.
    ///
    /// # Errors
    /// When this server doesn't have the present one.
    pub fn sealing_keys_for_newcomer(&self) -> Result<(Vec<u8>, Vec<u8>), ApiError> {
        let (current, next) = self.read_local(|state| {
            let cluster = state.cluster();
            let next = cluster.and_then(|of| of.next_sealing_key.as_ref()).map(|next| next.key_id.clone());
            (cluster.map(|of| of.sealing_key.clone()).unwrap_or_default(), next)
        });
        let next = next.and_then(|id| sealing_key(self, &id).ok());
        Ok((sealing_key(self, &current)?.to_vec(), next.map(|key| key.to_vec()).unwrap_or_default()))
    }

    /// A key for another server. Only for a member: whoever knows from the log that the key was named knows also who was
    /// removed before, so no server that was removed gets a key that was made afterwards.
    ///
    /// # Errors
    /// When that server is no member, or the key isn't here.
    pub fn hand_out_key(&self, server: u64, key_id: &str) -> Result<Vec<u8>, ApiError> {
        let (is_member, is_named) = self.read_local(|state| {
            let is_named = state.cluster().is_some_and(|cluster| {
                let next = cluster.next_sealing_key.as_ref().map(|next| next.key_id.as_str());
                !key_id.is_empty() && (cluster.sealing_key == key_id || next == Some(key_id))
            });
            (state.server(ServerId(server)).is_some(), is_named)
        });
        if !is_member {
            tracing::warn!(server, "a server that is no member has asked for a sealing key, and gets none");
            return Err(ApiError::Bad {
                status: StatusCode::FORBIDDEN,
                code: "server-removed",
                detail: format!("server {server} is not a member of the cluster"),
                hint: "join again with a new token",
            });
        }
        if !is_named {
            return Err(ApiError::Busy(format!("{} does not know this key (yet)", self.identity.name)));
        }
        Ok(sealing_key(self, key_id)?.to_vec())
    }

    /// A key that this server lacks, from the first server that gives it: those that have said that they have it go first.
    ///
    /// # Errors
    /// When no server gives it; what each said.
    pub async fn ask_for_key(&self, key_id: &str) -> Result<[u8; SEALING_KEY_LEN], String> {
        let own = self.identity.server_id;
        let mut servers: Vec<_> = self.read_local(|state| {
            let next = state.cluster().and_then(|cluster| cluster.next_sealing_key.as_ref());
            let all = state.servers().filter(|server| server.id.0 != own);
            all.map(|s| (!next.is_some_and(|next| next.is_held_by(s.id)), s.name.clone(), s.address.clone())).collect()
        });
        servers.sort();
        let mut tried = Vec::new();
        for (_, name, address) in servers {
            let request = PullSealingKeyRequest { key_id: key_id.to_owned() };
            let call = |mut client: ClusterClient<_>| async move { client.pull_sealing_key(request).await };
            match self.forwarder.call(&address, self.config.request_deadline, call).await {
                Ok(answer) => match <[u8; SEALING_KEY_LEN]>::try_from(answer.key) {
                    Ok(key) if id_of(&crate::identity::to_hex(&key)) == key_id => return Ok(key),
                    _ => tried.push(format!("{name} gave another key")),
                },
                Err(error) => tried.push(format!("{name}: {error}")),
            }
        }
        Err(format!("no server gives the sealing key that is needed here ({})", tried.join("; ")))
    }

    /// Tells whoever leads that this server has the key on disk. Returns the log index at which that was recorded.
    ///
    /// # Errors
    /// When there is no leader, or it refuses.
    pub async fn tell_that_held(&self, key_id: &str) -> Result<u64, ApiError> {
        match self.find_leader(self.config.request_deadline).await? {
            Leader::Here => self.record_held(self.identity.server_id, key_id.to_owned()).await,
            Leader::At(address) => {
                let request = HoldSealingKeyRequest { key_id: key_id.to_owned() };
                let call = |mut client: ClusterClient<_>| async move { client.hold_sealing_key(request).await };
                Ok(self.forwarder.call(&address, self.config.request_deadline, call).await?.revision)
            }
            Leader::None => Err(ApiError::NotLeader { leader: None }),
        }
    }

    /// Records that a server has the next key. Only the leader can.
    ///
    /// # Errors
    /// When there is no such server, or another key comes next.
    pub async fn record_held(&self, server: u64, key_id: String) -> Result<u64, ApiError> {
        let command = HoldSealingKey { server: ServerId(server), key_id };
        let held = self.propose(&format!("server:{server}"), "", Command::HoldSealingKey(command)).await?;
        Ok(held.revision.0)
    }

    /// Seals all secrets under the next key. Only the leader can; the state machine judges whether the time has come.
    ///
    /// # Errors
    /// When something was sealed meanwhile, or a server lacks the key.
    pub async fn reseal(&self, key_id: &str) -> Result<(), ApiError> {
        let read = self.read_local(|state| {
            let cluster = state.cluster()?;
            let next_ca = cluster.rotation.as_ref().map(|next| next.key_sealed.clone());
            Some((cluster.sealing_key.clone(), cluster.trust_epoch, cluster.ca_key_sealed.clone(), next_ca))
        });
        let (current, expect_epoch, ca, next_ca) = read.ok_or(cara_core::Rejected::NotInitialised {})?;
        let (old, new) = (sealing_key(self, &current)?, sealing_key(self, key_id)?);
        let anew = |sealed: &[u8]| {
            let secret = pki::unseal(&old, sealed).map_err(|error| ApiError::Internal(chain(&error)))?;
            Ok::<_, ApiError>(pki::seal(&*self.env.rng, &new, &secret))
        };
        let command = Reseal {
            key_id: key_id.to_owned(),
            expect_epoch,
            ca_key_sealed: anew(&ca)?,
            next_ca_key_sealed: next_ca.map(|key| anew(&key)).transpose()?.unwrap_or_default(),
        };
        self.propose("leader", "", Command::Reseal(command)).await.map(drop)
    }
}
