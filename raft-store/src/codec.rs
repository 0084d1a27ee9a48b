//! How values are written to the store and to the wire: postcard, and a frame that tells a torn value from a rotten one.

use std::io;

use serde::Serialize;
use serde::de::DeserializeOwned;

/// Length and checksum, four bytes each.
const FRAME: usize = 8;

/// Encodes a value.
pub(crate) fn encode<T: Serialize>(value: &T) -> Vec<u8> {
    encode_behind(value, Vec::new())
}

/// Encodes a value behind what is in `buffer`, whose capacity should do: growing copies.
pub(crate) fn encode_behind<T: Serialize>(value: &T, buffer: Vec<u8>) -> Vec<u8> {
    postcard::to_extend(value, buffer).expect("our own types always serialize into memory")
}

/// Decodes a value; `what` names it in the error.
pub(crate) fn decode<T: DeserializeOwned>(bytes: &[u8], what: &str) -> io::Result<T> {
    postcard::from_bytes(bytes)
        .map_err(|error| io::Error::new(io::ErrorKind::InvalidData, format!("{what} can't be decoded: {error}")))
}

/// Puts length and checksum before the bytes.
pub(crate) fn seal(bytes: &[u8]) -> Vec<u8> {
    let mut framed = frame(bytes.len());
    framed.extend_from_slice(bytes);
    fill_in(framed)
}

/// As [`seal`] of [`encode`], in one buffer. `about` is the expected length.
pub(crate) fn encode_sealed<T: Serialize>(value: &T, about: usize) -> Vec<u8> {
    fill_in(encode_behind(value, frame(about)))
}

/// A buffer for so many bytes that begins with a frame to be filled in.
fn frame(bytes: usize) -> Vec<u8> {
    let mut framed = Vec::with_capacity(FRAME + bytes);
    framed.resize(FRAME, 0);
    framed
}

fn fill_in(mut framed: Vec<u8>) -> Vec<u8> {
    let (frame, bytes) = framed.split_at_mut(FRAME);
    let length = u32::try_from(bytes.len()).expect("entries and chunks are far below 4 GiB");
    frame[..4].copy_from_slice(&length.to_le_bytes());
    frame[4..].copy_from_slice(&crc32fast::hash(bytes).to_le_bytes());
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
