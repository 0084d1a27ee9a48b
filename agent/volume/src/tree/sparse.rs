//! Writing content so that holes stay holes.

use crate::tree::Tree;
use crate::{TreeError, VolumePath};

/// The unit in which file systems give space; a shorter run of zeros saves none.
const BLOCK_BYTES: usize = 4096;

/// Writes content at an offset; blocks of zeros become holes. In a `fresh` file there is nothing to punch: its size is set
/// already and all of it is a hole until it is written.
///
/// # Errors
/// When the tree refuses.
pub(crate) fn write_content(
    tree: &mut dyn Tree,
    path: &VolumePath,
    offset: u64,
    bytes: &[u8],
    fresh: bool,
) -> Result<(), TreeError> {
    let mut at = 0;
    while at < bytes.len() {
        let (end, is_zero) = run(bytes, at, offset);
        let position = offset + at as u64;
        match (is_zero, fresh) {
            (false, _) => tree.write(path, position, &bytes[at..end])?,
            (true, false) => tree.punch(path, position..offset + end as u64)?,
            (true, true) => {}
        }
        at = end;
    }
    Ok(())
}

/// Where the run of like blocks that begins here ends, and whether it is zeros.
fn run(bytes: &[u8], from: usize, offset: u64) -> (usize, bool) {
    let (mut end, is_zero) = block(bytes, from, offset);
    while end < bytes.len() {
        let (next, next_is_zero) = block(bytes, end, offset);
        if next_is_zero != is_zero {
            break;
        }
        end = next;
    }
    (end, is_zero)
}

/// The rest of the file's block in which the byte `from` lies. Only a whole block counts as zeros.
fn block(bytes: &[u8], from: usize, offset: u64) -> (usize, bool) {
    let within = ((offset + from as u64) % BLOCK_BYTES as u64) as usize;
    let end = bytes.len().min(from + BLOCK_BYTES - within);
    (end, end - from == BLOCK_BYTES && bytes[from..end].iter().all(|byte| *byte == 0))
}
