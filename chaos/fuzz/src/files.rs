//! What is on disk, and what is pasted: damaged means refused, never a panic and never something else.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use cara_agent::Identity;
use cara_agent::ledger::Ledger;
use cara_control::identity::ServerIdentity;
use cara_env::{Env, Files};
use cara_transport::{JoinToken, Peer};

/// A disk on which every file has the same content.
struct OneContent(Vec<u8>);

impl Files for OneContent {
    fn read(&self, _path: &Path) -> io::Result<Vec<u8>> {
        Ok(self.0.clone())
    }

    fn write(&self, _path: &Path, _content: &[u8], _mode: u32) -> io::Result<()> {
        Ok(())
    }

    fn remove(&self, _path: &Path) -> io::Result<()> {
        Ok(())
    }

    fn list(&self, _folder: &Path) -> io::Result<Vec<String>> {
        Ok(Vec::new())
    }
}

fn env_with(bytes: &[u8]) -> Env {
    Env { files: Arc::new(OneContent(bytes.to_vec())), ..Env::real() }
}

/// The identity of a node.
pub fn node_identity(bytes: &[u8]) {
    if let Ok(Some(identity)) = Identity::load(&env_with(bytes), Path::new("identity.json")) {
        assert!(!format!("{identity:?}").contains(identity.key_pem.trim()), "a key in the logs");
    }
}

/// The identity of a server.
pub fn server_identity(bytes: &[u8]) {
    if let Ok(identity) = ServerIdentity::load(&env_with(bytes), Path::new("/data")) {
        let shown = format!("{identity:?}");
        assert!(!identity.sealing_keys().any(|key| shown.contains(key)), "a key in the logs");
    }
}

/// What an agent remembers.
pub fn ledger(bytes: &[u8]) {
    if let Ok(ledger) = Ledger::open(Arc::new(OneContent(bytes.to_vec())), PathBuf::from("ledger")) {
        let _ = (ledger.fence(), ledger.desired());
    }
}

/// The text of a join token: what is taken is shown as a token that reads as the same.
pub fn join_token(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    if let Ok(token) = text.parse::<JoinToken>() {
        assert_eq!(token.to_string().parse(), Ok(token));
    }
}

/// A certificate that a peer presents.
pub fn certificate(bytes: &[u8]) {
    if let Some(peer) = Peer::of(&bytes.to_vec().into()) {
        assert!(!Peer::uri(&peer.cluster, &peer.role).is_empty());
    }
}
