//! Volumes of a Docker engine as trees.
//!
//! An agent that runs as root beside the engine works on the folder in which the engine keeps the volume. Nothing else can
//! keep owners, and a database that finds its files owned by somebody else doesn't start.

use std::os::unix::fs::MetadataExt;
use std::path::Path;

use bollard::models;
use cara_volume::{FolderTree, Tree};

use super::RuntimeError;

/// Opens the folder of a volume.
pub(super) fn open(host: &str, volume: &models::Volume) -> Result<Box<dyn Tree + Send>, RuntimeError> {
    let refused = |cause: String| RuntimeError::Failed { operation: "open", subject: volume.name.clone(), cause };
    if !host.starts_with("unix://") {
        return Err(refused(format!(
            "the engine at {host} keeps it on another machine; run the agent beside the engine"
        )));
    }
    if volume.driver != "local" {
        return Err(refused(format!("it is kept by the driver {:?}; only local volumes can be copied", volume.driver)));
    }
    let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
    if !is_root {
        return Err(refused("owners of files can only be kept by root; run the agent as root".to_owned()));
    }
    let tree = FolderTree::open(Path::new(&volume.mountpoint)).map_err(|error| refused(error.to_string()))?;
    Ok(Box::new(tree))
}
