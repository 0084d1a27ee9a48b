//! All entries of a tree, sorted by path, in memory that doesn't grow with the tree.

use crate::tree::{Kind, Stat, Tree};
use crate::{TreeError, VolumePath};

/// Names of one folder held at a time, so that all but giants are listed once; a page is 32 MiB at the very worst, and the
/// manifest that the walk is for takes more for each of them.
const PAGE_NAMES: usize = 131_072;

/// A walk. Between two steps the tree may change: what vanishes is passed over, what appears may or may not be seen.
pub struct Walk {
    started: bool,
    /// The folders from the root down to where the walk is.
    open: Vec<Open>,
}

struct Open {
    folder: VolumePath,
    /// Names still to be visited, in reverse order.
    page: Vec<Vec<u8>>,
    /// The last name visited, when more may follow it beyond the page.
    after: Option<Vec<u8>>,
}

impl Walk {
    /// From the root, which comes first.
    #[allow(clippy::new_without_default)]
    pub fn new() -> Self {
        Self { started: false, open: Vec::new() }
    }

    /// The next entry; nothing at the end.
    ///
    /// # Errors
    /// When a folder that still exists can't be listed, and when the root is missing.
    pub fn next(&mut self, tree: &dyn Tree) -> Result<Option<(VolumePath, Stat)>, TreeError> {
        if !self.started {
            self.started = true;
            let root = VolumePath::root();
            let Some(stat) = tree.stat(&root)? else {
                return Err(TreeError::new("find", &root, std::io::ErrorKind::NotFound));
            };
            self.enter(root.clone());
            return Ok(Some((root, stat)));
        }
        while let Some(open) = self.open.last_mut() {
            let Some(name) = open.next_name(tree)? else {
                self.open.pop();
                continue;
            };
            let path = open.folder.join(&name).map_err(|error| {
                // The kernel gives no such names, but a path can be longer than what we carry.
                TreeError::new("walk through", &open.folder, std::io::Error::other(error))
            })?;
            let Some(stat) = tree.stat(&path)? else { continue };
            if stat.kind == Kind::Folder {
                self.enter(path.clone());
            }
            return Ok(Some((path, stat)));
        }
        Ok(None)
    }

    fn enter(&mut self, folder: VolumePath) {
        self.open.push(Open { folder, page: Vec::new(), after: Some(Vec::new()) });
    }
}

impl Open {
    fn next_name(&mut self, tree: &dyn Tree) -> Result<Option<Vec<u8>>, TreeError> {
        if let Some(name) = self.page.pop() {
            return Ok(Some(name));
        }
        let Some(after) = self.after.take() else { return Ok(None) };
        let mut page = match tree.list(&self.folder, &after, PAGE_NAMES) {
            Ok(page) => page,
            Err(error) if error.is_absent() && !self.folder.is_root() => return Ok(None),
            Err(error) => return Err(error),
        };
        if page.len() == PAGE_NAMES {
            self.after = page.last().cloned();
        }
        page.reverse();
        self.page = page;
        Ok(self.page.pop())
    }
}
