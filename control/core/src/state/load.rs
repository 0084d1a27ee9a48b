//! The state as key/value pairs and back: what the store persists and what a snapshot carries.

use super::fnv::Fnv;
use super::index::Index;
use super::{Key, State};
use crate::codec::CodecError;
use prost::Message;

impl State {
    /// All pairs, sorted by key. Equal states have equal dumps.
    pub fn dump(&self) -> Vec<(Vec<u8>, Vec<u8>)> {
        let mut pairs: Vec<(Vec<u8>, Vec<u8>)> = self
            .keys()
            .into_iter()
            .filter_map(|key| self.encode_object(&key).map(|value| (key.to_bytes(), value)))
            .collect();
        pairs.sort();
        pairs
    }

    /// The state that had these pairs. Fails on a key or a value that is not ours, naming it: a server that skipped it
    /// would differ from the others.
    pub fn load<K, V>(pairs: impl IntoIterator<Item = (K, V)>) -> Result<State, CodecError>
    where
        K: AsRef<[u8]>,
        V: AsRef<[u8]>,
    {
        let mut state = State::default();
        for (key, value) in pairs {
            let (bytes, value) = (key.as_ref(), value.as_ref());
            let key = Key::parse(bytes).ok_or_else(|| CodecError::UnknownKey { key: readable(bytes) })?;
            state.insert(&key, value).map_err(|source| CodecError::Object { key: readable(bytes), source })?;
        }
        Ok(state)
    }

    /// A fingerprint of the whole state, to compare servers. Not for secrets; costs a pass over everything.
    pub fn state_hash(&self) -> u64 {
        let mut hash = Fnv::default();
        for (key, value) in self.dump() {
            hash.bytes(&(key.len() as u64).to_le_bytes());
            hash.bytes(&key);
            hash.bytes(&(value.len() as u64).to_le_bytes());
            hash.bytes(&value);
        }
        hash.sum()
    }

    /// True when the indexes are what the objects say.
    pub(crate) fn indexes_are_exact(&self) -> bool {
        let mut index = Index::default();
        self.nodes.values().for_each(|node| index.add_node(node));
        self.join_tokens.values().for_each(|token| index.add_join_token(token));
        self.workloads.values().for_each(|workload| index.add_workload(workload));
        self.moves.values().for_each(|mv| index.add_move(mv));
        self.drains.values().for_each(|drain| index.add_drain(drain));
        let api_tokens = self.api_tokens.values().map(|token| (token.hash.clone(), token.id.clone()));
        index.api_token_by_hash = api_tokens.collect();
        index == self.index && self.replies.is_exact()
    }

    pub(super) fn encode_object(&self, key: &Key) -> Option<Vec<u8>> {
        match key {
            Key::Meta => Some(self.meta.encode_to_vec()),
            Key::Cluster => self.cluster.as_ref().map(Message::encode_to_vec),
            Key::Server(id) => self.servers.get(id).map(Message::encode_to_vec),
            Key::Node(id) => self.nodes.get(id).map(Message::encode_to_vec),
            Key::NodeEvents(id) => self.node_events.get(id).map(Message::encode_to_vec),
            Key::JoinToken(id) => self.join_tokens.get(id).map(Message::encode_to_vec),
            Key::ApiToken(id) => self.api_tokens.get(id).map(Message::encode_to_vec),
            Key::Workload(uid) => self.workloads.get(uid).map(Message::encode_to_vec),
            Key::Audit(revision) => self.audit.get(revision).map(Message::encode_to_vec),
            Key::Reply(id) => self.replies.encoded(id).map(<[u8]>::to_vec),
            Key::Move(id) => self.moves.get(id).map(Message::encode_to_vec),
            Key::Drain(id) => self.drains.get(id).map(Message::encode_to_vec),
        }
    }

    fn keys(&self) -> Vec<Key> {
        let mut keys = Vec::new();
        if self.meta.revision.0 > 0 {
            keys.push(Key::Meta);
        }
        keys.extend(self.cluster.as_ref().map(|_| Key::Cluster));
        keys.extend(self.servers.keys().map(|id| Key::Server(*id)));
        keys.extend(self.nodes.keys().map(|id| Key::Node(id.clone())));
        keys.extend(self.node_events.keys().map(|id| Key::NodeEvents(id.clone())));
        keys.extend(self.join_tokens.keys().map(|id| Key::JoinToken(id.clone())));
        keys.extend(self.api_tokens.keys().map(|id| Key::ApiToken(id.clone())));
        keys.extend(self.workloads.keys().map(|uid| Key::Workload(uid.clone())));
        keys.extend(self.audit.keys().map(|revision| Key::Audit(*revision)));
        keys.extend(self.replies.request_ids().map(|id| Key::Reply(id.to_owned())));
        keys.extend(self.moves.keys().map(|id| Key::Move(id.clone())));
        keys.extend(self.drains.keys().map(|id| Key::Drain(id.clone())));
        keys
    }

    /// Puts one stored object in its place. The key decides the place, the value has the id too.
    fn insert(&mut self, key: &Key, value: &[u8]) -> Result<(), prost::DecodeError> {
        match key {
            Key::Meta => self.meta = Message::decode(value)?,
            Key::Cluster => self.cluster = Some(Message::decode(value)?),
            Key::Server(id) => {
                self.servers.insert(*id, Message::decode(value)?);
            }
            Key::Node(id) => {
                let node = Message::decode(value)?;
                self.index.add_node(&node);
                self.nodes.insert(id.clone(), node);
            }
            Key::NodeEvents(id) => {
                self.node_events.insert(id.clone(), Message::decode(value)?);
            }
            Key::JoinToken(id) => {
                let token = Message::decode(value)?;
                self.index.add_join_token(&token);
                self.join_tokens.insert(id.clone(), token);
            }
            Key::ApiToken(id) => {
                let token: crate::model::ApiToken = Message::decode(value)?;
                self.index.api_token_by_hash.insert(token.hash.clone(), id.clone());
                self.api_tokens.insert(id.clone(), token);
            }
            Key::Workload(uid) => {
                let workload = Message::decode(value)?;
                self.index.add_workload(&workload);
                self.workloads.insert(uid.clone(), workload);
            }
            Key::Audit(revision) => {
                self.audit.insert(*revision, Message::decode(value)?);
            }
            Key::Reply(_) => self.replies.load(value)?,
            Key::Move(id) => {
                let mv = Message::decode(value)?;
                self.index.add_move(&mv);
                self.moves.insert(id.clone(), mv);
            }
            Key::Drain(id) => {
                let drain = Message::decode(value)?;
                self.index.add_drain(&drain);
                self.drains.insert(id.clone(), drain);
            }
        }
        Ok(())
    }
}

fn readable(key: &[u8]) -> String {
    String::from_utf8_lossy(key).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::invariant::{InvariantId, check};

    #[test]
    fn an_index_that_differs_from_the_objects_is_found() {
        let mut state = State::default();
        state.index.unplaced.insert("w1".into());
        assert_eq!(check(&state).iter().map(|violation| violation.id).collect::<Vec<_>>(), [InvariantId::IndexesExact]);
    }

    #[test]
    fn equal_states_hash_equal_and_others_do_not() {
        let mut state = State::default();
        let empty = state.state_hash();
        assert_eq!(empty, State::default().state_hash());
        state.cluster = Some(Default::default());
        assert_ne!(empty, state.state_hash());
    }
}
