//! How values are written to the store and to the wire: postcard, and a frame that tells a torn value from a rotten one.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Length and checksum, four bytes each.
const FRAME: usize = 8;

/// Encodes a value.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    postcard::to_stdvec(value).expect("our own types always serialize into memory")
}

/// Decodes a value; `what` names it in the error.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8], what: &str) -> io::Result<T> {
    postcard::from_bytes(bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{what} can't be decoded: {error}")))
}

/// Puts length and checksum before the bytes.
pub(crate) fn seal(bytes: &[u8]) -> Vec<u8> {
    let length = u32::try_from(bytes.len()).expect("entries and chunks are far below 4 GiB");
    let mut framed = Vec::with_capacity(FRAME + bytes.len());
    framed.extend_from_slice(&length.to_le_bytes());
    framed.extend_from_slice(&crc32fast::hash(bytes).to_le_bytes());
    framed.extend_from_slice(bytes);
    framed
}

/// What is wrong with a sealed value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Unsealed {
    /// Shorter than it says: a write that was cut off.
    Torn,
    /// All there, but not what was written.
    Rotten,
}

/// The bytes of a sealed value.
pub(crate) fn unseal(framed: &[u8]) -> Result<&[u8], Unsealed> {
    let (frame, bytes) = framed.split_at_checked(FRAME).ok_or(Unsealed::Torn)?;
    let (length, checksum) = frame.split_at(4);
    let length = u32::from_le_bytes(length.try_into().expect("four bytes")) as usize;
    let checksum = u32::from_le_bytes(checksum.try_into().expect("four bytes"));
    match bytes.len().cmp(&length) {
        std::cmp::Ordering::Less => Err(Unsealed::Torn),
        std::cmp::Ordering::Equal if crc32fast::hash(bytes) == checksum => Ok(bytes),
        _ => Err(Unsealed::Rotten),
    }
}

/// As [`unseal`], for places where damage of any kind is an error.
pub(crate) fn unseal_or_fail<'a>(framed: &'a [u8], what: &str) -> io::Result<&'a [u8]> {
    unseal(framed).map_err(|_| damaged(format!("{what} has a wrong checksum")))
}

/// The error for stored data that isn't what was written.
pub(crate) fn damaged(what: impl Into<String>) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sealed_value_comes_back_and_damage_is_told_apart() {
        let sealed = seal(b"hello");
        assert_eq!(unseal(&sealed), Ok(&b"hello"[..]));
        for cut in 0..sealed.len() {
            assert_eq!(unseal(&sealed[..cut]), Err(Unsealed::Torn), "cut at {cut}");
        }
        for at in 4..sealed.len() {
            let mut bent = sealed.clone();
            bent[at] ^= 0x10;
            assert_eq!(unseal(&bent), Err(Unsealed::Rotten), "bent at {at}");
        }
    }
}
