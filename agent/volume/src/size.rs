//! How large a volume is, told from its tree without reading a file.

use std::collections::BTreeSet;

use crate::TreeError;
use crate::tree::{Kind, Tree, Walk};

/// Bytes of all files, a file with several names counted once and holes counted as if they were filled. None when there
/// are more than `entries_max` entries: then the walk was given up.
///
/// # Errors
/// When a folder can't be listed.
pub fn bytes(tree: &dyn Tree, entries_max: u64) -> Result<Option<u64>, TreeError> {
    let (mut walk, mut linked) = (Walk::new(), BTreeSet::new());
    let (mut bytes, mut entries) = (0u64, 0u64);
    while let Some((_, stat)) = walk.next(tree)? {
        entries += 1;
        if entries > entries_max {
            return Ok(None);
        }
        let counted = stat.kind == Kind::File && (stat.links < 2 || linked.insert(stat.inode));
        bytes = bytes.saturating_add(if counted { stat.size } else { 0 });
    }
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::tree::New;
    use crate::{MemoryTree, VolumePath};

    #[test]
    fn files_count_once_and_too_many_of_them_not_at_all() {
        let path = |text: &str| VolumePath::parse(text.as_bytes()).expect("a path");
        let mut tree = MemoryTree::new();
        assert_eq!(bytes(&tree, 1).expect("read"), Some(0), "the root is an entry");
        tree.create(&path("pg"), New::Folder).expect("made");
        tree.create(&path("pg/base"), New::File).expect("made");
        tree.write(&path("pg/base"), 0, b"rows").expect("written");
        tree.create(&path("pg/also"), New::HardLink(&path("pg/base"))).expect("made");
        tree.create(&path("wal"), New::File).expect("made");
        tree.write(&path("wal"), 8, b"x").expect("written");
        assert_eq!(bytes(&tree, 5).expect("read"), Some(4 + 9));
        assert_eq!(bytes(&tree, 4).expect("read"), None);
    }
}
