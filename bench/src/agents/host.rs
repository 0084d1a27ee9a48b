//! One agent's machine: an address of its own for its connections, and small files in memory.
//!
//! In a fleet each agent has its own disk; here they would all sync the disk on which the servers are measured.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use cara_env::{Env, Files, IoStream, Listener, Net, RealFiles};

use super::beats::Tally;

/// Connections from one source address to one server: far below the 28,000 ports that Linux gives out.
const AGENTS_PER_ADDRESS: usize = 1_000;

/// The world of agent number `index` of a worker.
pub fn env(real: &Env, worker: u8, index: usize, tally: &Arc<Tally>) -> Env {
    let files = MemoryFiles { files: Mutex::default(), tally: tally.clone() };
    Env { net: Arc::new(SourceNet(source(worker, index))), files: Arc::new(files), ..real.clone() }
}

/// 127.x.y.1: loopback has 16 million addresses, each with ports of its own.
pub fn source(worker: u8, index: usize) -> Ipv4Addr {
    let block = u8::try_from(index / AGENTS_PER_ADDRESS % 250).unwrap_or_default();
    Ipv4Addr::new(127, worker % 250 + 1, block + 1, 1)
}

/// TCP from one address. Nobody listens: what agents say to each other is not measured here.
struct SourceNet(Ipv4Addr);

#[async_trait::async_trait]
impl Net for SourceNet {
    async fn connect(&self, address: &str) -> io::Result<IoStream> {
        let resolved = tokio::net::lookup_host(address).await?.next();
        let to = resolved.ok_or_else(|| io::Error::new(io::ErrorKind::NotFound, "the name has no address"))?;
        let stream = match to {
            SocketAddr::V4(v4) if v4.ip().is_loopback() => {
                let socket = tokio::net::TcpSocket::new_v4()?;
                socket.bind(SocketAddr::new(IpAddr::V4(self.0), 0))?;
                socket.connect(to).await?
            }
            SocketAddr::V4(_) | SocketAddr::V6(_) => tokio::net::TcpStream::connect(to).await?,
        };
        stream.set_nodelay(true)?;
        Ok(Box::pin(stream))
    }

    async fn listen(&self, _: &str) -> io::Result<Box<dyn Listener>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the bench's agents are not reached by others"))
    }
}

/// Small files that live as long as the process. What the kernel says in `/proc` is read from there.
struct MemoryFiles {
    files: Mutex<BTreeMap<PathBuf, Vec<u8>>>,
    tally: Arc<Tally>,
}

impl Files for MemoryFiles {
    fn read(&self, path: &Path) -> io::Result<Vec<u8>> {
        if path.starts_with("/proc") {
            return RealFiles.read(path);
        }
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        files.get(path).cloned().ok_or_else(|| io::Error::from(io::ErrorKind::NotFound))
    }

    fn write(&self, path: &Path, content: &[u8], _mode: u32) -> io::Result<()> {
        let mut files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let is_new = files.insert(path.to_owned(), content.to_owned()).is_none();
        if is_new && path.file_name() == Some(OsStr::new("identity.json")) {
            self.tally.enrolled();
        }
        Ok(())
    }

    fn remove(&self, path: &Path) -> io::Result<()> {
        self.files.lock().unwrap_or_else(PoisonError::into_inner).remove(path);
        Ok(())
    }

    fn list(&self, folder: &Path) -> io::Result<Vec<String>> {
        let files = self.files.lock().unwrap_or_else(PoisonError::into_inner);
        let names = files.keys().filter(|path| path.parent() == Some(folder)).filter_map(|path| path.file_name());
        Ok(names.map(|name| name.to_string_lossy().into_owned()).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ten_thousand_agents_have_addresses_enough() {
        let mut used = BTreeMap::new();
        for worker in 0..4 {
            for index in 0..2_500 {
                let address = source(worker, index);
                assert!(address.is_loopback());
                *used.entry(address).or_insert(0) += 1;
            }
        }
        assert!(used.values().all(|agents| *agents <= AGENTS_PER_ADDRESS), "{used:?}");
    }

    #[test]
    fn an_identity_is_counted_once() {
        let real = Env::real();
        let tally = Tally::new(real.clock.clone());
        let files = env(&real, 0, 0, &tally).files;
        let path = Path::new("/a/identity.json");
        assert_eq!(files.read(path).expect_err("not there").kind(), io::ErrorKind::NotFound);
        files.write(path, b"1", 0o600).expect("memory");
        files.write(path, b"2", 0o600).expect("memory");
        assert_eq!(files.read(path).expect("there"), b"2");
        assert_eq!(files.list(Path::new("/a")).expect("memory"), ["identity.json"]);
        assert_eq!(tally.take().enrolled, 1);
        files.remove(path).expect("memory");
        assert!(files.read(path).is_err());
    }
}
