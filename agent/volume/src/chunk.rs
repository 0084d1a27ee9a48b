//! Chunks: pieces of files, cut where the content says so, and named by their hash.
//!
//! Because a cut depends on the bytes before it only, an insertion moves the cuts around it and no others; all the rest of
//! the file is found again at the target under the same hashes.

use std::fmt;
use std::sync::LazyLock;

/// Files up to this size are one chunk; a shorter chunk costs more to name than to send.
const CHUNK_BYTES_MIN: usize = 16 * 1024;
/// What cuts aim at: a page of a database that changed costs about this much.
const CHUNK_BYTES_AVERAGE: usize = 64 * 1024;
/// No chunk is longer, so that a chunk always fits into one message.
pub const CHUNK_BYTES_MAX: usize = 256 * 1024;
/// Below the average, a cut needs 17 bits of the rolling hash to be zero, above it 15: sizes gather around the average.
const MASK_BELOW: u64 = fastcdc::v2020::MASKS[17];
const MASK_ABOVE: u64 = fastcdc::v2020::MASKS[15];

/// BLAKE3 of something.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Hash(pub [u8; 32]);

impl Hash {
    /// The hash of that content.
    pub fn of(bytes: &[u8]) -> Self {
        Self(*blake3::hash(bytes).as_bytes())
    }
}

impl fmt::Display for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|byte| write!(f, "{byte:02x}"))
    }
}

impl fmt::Debug for Hash {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self}")
    }
}

/// A piece of a file.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Chunk {
    /// Of its content.
    pub hash: Hash,
    /// Bytes, 1 to [`CHUNK_BYTES_MAX`].
    pub length: u32,
}

/// The chunk into which long runs of zeros are cut: whoever needs it makes it himself.
pub(crate) static ZERO_CHUNK: LazyLock<Chunk> = LazyLock::new(|| {
    let zeros = vec![0; CHUNK_BYTES_MAX];
    first(&zeros)
});

/// Cuts the first chunk off a file's next bytes, which are all that remain or at least [`CHUNK_BYTES_MAX`].
///
/// # Panics
/// When there are none.
pub(crate) fn first(bytes: &[u8]) -> Chunk {
    assert!(!bytes.is_empty(), "an empty file has no chunks");
    let (_, length) = fastcdc::v2020::cut(
        bytes,
        CHUNK_BYTES_MIN,
        CHUNK_BYTES_AVERAGE,
        CHUNK_BYTES_MAX,
        MASK_BELOW,
        MASK_ABOVE,
        MASK_BELOW << 1,
        MASK_ABOVE << 1,
    );
    let length_u32 = u32::try_from(length).expect("a chunk is at most 256 KiB");
    Chunk { hash: Hash::of(&bytes[..length]), length: length_u32 }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::{RngCore, SeedableRng};

    fn cuts(mut bytes: &[u8]) -> Vec<Chunk> {
        let mut chunks = Vec::new();
        while !bytes.is_empty() {
            let chunk = first(bytes);
            chunks.push(chunk);
            bytes = &bytes[chunk.length as usize..];
        }
        chunks
    }

    #[test]
    fn an_insertion_moves_few_cuts() {
        let mut bytes = vec![0; 8 << 20];
        rand_chacha::ChaCha8Rng::seed_from_u64(1).fill_bytes(&mut bytes);
        let before = cuts(&bytes);
        bytes.splice(1000..1000, *b"inserted");
        let after = cuts(&bytes);
        let new = after.iter().filter(|chunk| !before.contains(chunk)).count();
        assert!(before.len() > 60, "{} chunks", before.len());
        assert!(new <= 2, "{new} new chunks");
    }

    #[test]
    fn the_fixed_masks_cut_as_the_published_algorithm_does() {
        let mut bytes = vec![0; 2 << 20];
        rand_chacha::ChaCha8Rng::seed_from_u64(2).fill_bytes(&mut bytes);
        let published = fastcdc::v2020::FastCDC::new(&bytes, 16 << 10, 64 << 10, 256 << 10).map(|chunk| chunk.length);
        assert!(published.eq(cuts(&bytes).iter().map(|chunk| chunk.length as usize)));
    }

    #[test]
    fn zeros_are_cut_at_one_length_whatever_follows() {
        let zero = *ZERO_CHUNK;
        let mut bytes = vec![0; CHUNK_BYTES_MAX];
        bytes.extend_from_slice(&[1; 1000]);
        assert_eq!(first(&bytes), zero);
    }
}
