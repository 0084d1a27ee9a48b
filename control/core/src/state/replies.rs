//! Answers that were given, for retries.
//!
//! There may be a hundred thousand of them and few are ever wanted again, so each is kept as it is stored, which is a fraction
//! of a message with its strings.

use std::collections::BTreeMap;
use std::sync::Arc;

use prost::Message as _;

use super::fnv::Fnv;
use crate::id::Revision;
use crate::reply::Reply;

/// An answer that was given, with what a retry must have in common with the first try.
#[derive(Clone, PartialEq, prost::Message)]
pub(super) struct StoredReply {
    #[prost(string, tag = "1")]
    pub request_id: String,
    #[prost(uint64, tag = "2")]
    pub at_ms: u64,
    #[prost(string, tag = "3")]
    pub actor: String,
    #[prost(string, tag = "4")]
    pub command: String,
    #[prost(message, required, tag = "5")]
    pub reply: Reply,
}

/// A hash before the request id: among a hundred thousand, each comparison of strings would go for its own piece of memory.
type Request = (u64, Arc<str>);

/// See the module.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Replies {
    /// Encoded; each can be decoded.
    by_request: BTreeMap<Request, Box<[u8]>>,
    /// When each was given, and to which request.
    by_age: BTreeMap<Revision, (u64, Arc<str>)>,
}

fn request(id: Arc<str>) -> Request {
    let mut hash = Fnv::default();
    hash.bytes(id.as_bytes());
    (hash.sum(), id)
}

impl Replies {
    pub fn len(&self) -> usize {
        self.by_request.len()
    }

    pub fn get(&self, request_id: &str) -> Option<StoredReply> {
        self.encoded(request_id).and_then(|bytes| StoredReply::decode(bytes).ok())
    }

    /// As it is stored.
    pub fn encoded(&self, request_id: &str) -> Option<&[u8]> {
        self.by_request.get(&request(request_id.into())).map(|bytes| &bytes[..])
    }

    pub fn request_ids(&self) -> impl Iterator<Item = &str> {
        self.by_request.keys().map(|(_, id)| &**id)
    }

    /// When the oldest was given, in ms of the log's time.
    pub fn oldest_at_ms(&self) -> Option<u64> {
        self.by_age.first_key_value().map(|(_, (at_ms, _))| *at_ms)
    }

    /// Forgets the oldest and gives its request id.
    pub fn forget_oldest(&mut self) -> Option<Arc<str>> {
        let (_, (_, request_id)) = self.by_age.pop_first()?;
        self.by_request.remove(&request(request_id.clone()));
        Some(request_id)
    }

    pub fn keep(&mut self, stored: &StoredReply) {
        self.put(stored, stored.encode_to_vec());
    }

    /// Takes one as it is stored.
    pub fn load(&mut self, bytes: &[u8]) -> Result<(), prost::DecodeError> {
        let stored = StoredReply::decode(bytes)?;
        self.put(&stored, bytes.to_vec());
        Ok(())
    }

    fn put(&mut self, stored: &StoredReply, bytes: Vec<u8>) {
        let request_id: Arc<str> = stored.request_id.as_str().into();
        self.by_age.insert(stored.reply.revision, (stored.at_ms, request_id.clone()));
        self.by_request.insert(request(request_id), bytes.into());
    }

    /// True when both orders have the same replies.
    pub fn is_exact(&self) -> bool {
        let mut again = Self::default();
        self.by_request.values().all(|bytes| again.load(bytes).is_ok()) && again == *self
    }
}
