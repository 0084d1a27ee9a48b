//! Bytes: entries for the log, outcomes for whoever waits. Prost with append-only tags; objects are encoded by `State`.
//!
//! Decoding arbitrary bytes never panics; unknown fields are passed over, unknown commands and numbers are refused,
//! because a server that skipped them would differ from the others.

use crate::command::Command;
use crate::entry::Entry;
use crate::limits;
use crate::rejected::Rejected;
use crate::reply::Reply;
use prost::Message;

/// Why bytes could not be made or read.
#[derive(Debug, thiserror::Error)]
pub enum CodecError {
    /// The entry does not fit into the log.
    #[error("the entry has {bytes} bytes, at most {max} fit into the log: send less at once")]
    TooLarge {
        /// Of the entry.
        bytes: usize,
        /// The limit.
        max: usize,
    },
    /// The bytes are no message of this kind.
    #[error("decode {what}: the bytes are damaged or of a newer version")]
    Bytes {
        /// What was to be read.
        what: &'static str,
        /// What prost says.
        source: prost::DecodeError,
    },
    /// A command that this version does not know.
    #[error("decode entry: the command is of a newer version, upgrade this server")]
    UnknownCommand,
    /// A refusal that this version does not know.
    #[error("decode outcome: the refusal number {number} is of a newer version, upgrade this server")]
    UnknownRefusal {
        /// As in the bytes.
        number: u32,
    },
    /// A stored key that this version does not know.
    #[error("load state: the key {key:?} is damaged or of a newer version")]
    UnknownKey {
        /// As text.
        key: String,
    },
    /// A stored object that can't be read.
    #[error("load state: the object at {key:?} is damaged or of a newer version")]
    Object {
        /// As text.
        key: String,
        /// What prost says.
        source: prost::DecodeError,
    },
}

/// The bytes of an entry, at most 1 MiB.
pub fn encode_entry(entry: &Entry) -> Result<Vec<u8>, CodecError> {
    let bytes = entry.encoded_len();
    if bytes > limits::ENTRY_BYTES_MAX {
        return Err(CodecError::TooLarge { bytes, max: limits::ENTRY_BYTES_MAX });
    }
    Ok(entry.encode_to_vec())
}

/// The entry of these bytes.
pub fn decode_entry(bytes: &[u8]) -> Result<Entry, CodecError> {
    let entry = Entry::decode(bytes).map_err(|source| CodecError::Bytes { what: "entry", source })?;
    if entry.command == Command::Unknown {
        return Err(CodecError::UnknownCommand);
    }
    Ok(entry)
}

/// The bytes of what applying an entry answered.
pub fn encode_outcome(outcome: &Result<Reply, Rejected>) -> Vec<u8> {
    let wire = match outcome {
        Ok(reply) => Outcome { reply: Some(reply.clone()), refusal: None },
        Err(rejected) => {
            let (number, parts) = rejected.to_parts();
            Outcome { reply: None, refusal: Some(Refusal { number, parts }) }
        }
    };
    wire.encode_to_vec()
}

/// The outcome of these bytes.
pub fn decode_outcome(bytes: &[u8]) -> Result<Result<Reply, Rejected>, CodecError> {
    let wire = Outcome::decode(bytes).map_err(|source| CodecError::Bytes { what: "outcome", source })?;
    match (wire.reply, wire.refusal) {
        (_, Some(Refusal { number, parts })) => match Rejected::from_parts(number, parts) {
            Some(rejected) => Ok(Err(rejected)),
            None => Err(CodecError::UnknownRefusal { number }),
        },
        (Some(reply), None) => Ok(Ok(reply)),
        (None, None) => Err(CodecError::UnknownRefusal { number: 0 }),
    }
}

#[derive(Clone, PartialEq, prost::Message)]
struct Outcome {
    #[prost(message, optional, tag = "1")]
    reply: Option<Reply>,
    #[prost(message, optional, tag = "2")]
    refusal: Option<Refusal>,
}

#[derive(Clone, PartialEq, prost::Message)]
struct Refusal {
    #[prost(uint32, tag = "1")]
    number: u32,
    #[prost(string, repeated, tag = "2")]
    parts: Vec<String>,
}
