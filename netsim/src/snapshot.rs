//! A copy of what a machine has on its disk.

use std::collections::BTreeMap;
use std::path::PathBuf;

use cara_env::Cf;

use crate::trace;

/// All pairs of all column families.
pub(crate) type Image = BTreeMap<Cf, BTreeMap<Vec<u8>, Vec<u8>>>;

/// A machine's database and files at one moment.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Snapshot {
    pub(crate) disk: Image,
    pub(crate) files: BTreeMap<PathBuf, Vec<u8>>,
}

impl Snapshot {
    /// A short hash of all that is in it.
    pub(crate) fn fingerprint(&self) -> u64 {
        let mut hashes = Vec::new();
        for (cf, pairs) in &self.disk {
            hashes.push(trace::fingerprint(cf.name().as_bytes()));
            hashes.extend(pairs.iter().flat_map(|(key, value)| [trace::fingerprint(key), trace::fingerprint(value)]));
        }
        for (path, content) in &self.files {
            hashes.push(trace::fingerprint(path.as_os_str().as_encoded_bytes()));
            hashes.push(trace::fingerprint(content));
        }
        trace::fingerprint(&hashes.iter().flat_map(|hash| hash.to_le_bytes()).collect::<Vec<u8>>())
    }
}
