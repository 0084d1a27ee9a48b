//! Volumes of a Docker engine as trees.
//!
//! An agent that runs as root beside the engine works on the folder in which the engine keeps the volume. Any other one takes
//! a copy through the engine's archive calls, on a container that mounts the volume and is never started, and brings the
//! copy back as a whole.

use std::fs::File;
use std::io::{BufReader, BufWriter, Read, Write};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};
use std::time::Duration;

use bollard::query_parameters as query;
use bollard::{Docker, models};
use bytes::Bytes;
use cara_volume::archive::{tar_to_tree, tree_to_tar};
use cara_volume::scan::Scanner;
use cara_volume::{FolderTree, Manifest, Tree, VolumeError, VolumePath, size};
use futures_util::StreamExt;

use super::spool::SpoolTree;
use super::{ASK, CHANGE, DockerRuntime, RuntimeError, convert};
use crate::runtime::{ContainerRuntime, Object};

/// Where the container that is never started mounts the volume. Docker puts this name before all paths of an archive.
const MOUNTED: &str = "volume";
/// Bytes carried at a time.
const PIECE_BYTES: usize = 256 << 10;
/// Entries that are looked at to measure a volume: a minute of a slow disk.
const MEASURED_ENTRIES_MAX: u64 = 1_000_000;
/// A piece of an archive takes no longer, or the engine hangs.
const PIECE_PAUSE: Duration = Duration::from_secs(60);
/// An archive that is brought in takes no longer: 1 TiB over a slow disk.
const UPLOAD: Duration = Duration::from_secs(12 * 3600);

impl DockerRuntime {
    pub(super) async fn open_volume(&self, name: &str) -> Result<Box<dyn Tree + Send>, RuntimeError> {
        let client = self.client().await?;
        let volume = self.within("open", name, ASK, client.inspect_volume(name)).await?;
        match self.folder_of(&volume)? {
            Some(folder) => {
                let open = cara_env::blocking(move || FolderTree::open(&folder)).await;
                Ok(Box::new(open.map_err(|error| failed("open", name, &error))?))
            }
            None => Ok(Box::new(self.download(&client, name).await?)),
        }
    }

    /// The size of a volume whose folder we reach. Docker tells sizes too, but only by walking through all that it keeps.
    pub(super) async fn measure_volume(&self, name: &str) -> Result<Option<u64>, RuntimeError> {
        let client = self.client().await?;
        let volume = self.within("measure", name, ASK, client.inspect_volume(name)).await?;
        let Some(folder) = self.folder_of(&volume)? else { return Ok(None) };
        let measuring = cara_env::blocking(move || size::bytes(&FolderTree::open(&folder)?, MEASURED_ENTRIES_MAX));
        measuring.await.map_err(|error| failed("measure", name, &error))
    }

    pub(super) async fn close_volume(&self, name: &str, tree: Box<dyn Tree + Send>) -> Result<(), RuntimeError> {
        let client = self.client().await?;
        let volume = self.within("fill", name, ASK, client.inspect_volume(name)).await?;
        if self.folder_of(&volume)?.is_some() {
            return Ok(()); // The tree is the volume's own folder.
        }
        let (archive, path) = (self.spool_path(name)?.with_extension("tar"), name.to_owned());
        let packed = archive.clone();
        let packing = cara_env::blocking(move || {
            let given = whole_seconds(&*tree)?;
            let file = File::create(&packed).map_err(pack_error)?;
            // With a name of its own: of an entry `./` an engine takes neither owner nor mode.
            tree_to_tar(&*tree, &mounted(), BufWriter::new(file))?.flush().map_err(pack_error)?;
            Ok::<_, VolumeError>(given)
        });
        let outcome = match packing.await {
            Ok(given) => self.upload(&client, &volume, &archive, given).await,
            Err(error) => Err(failed("fill", &path, &error)),
        };
        cara_env::blocking(move || std::fs::remove_file(archive)).await.unwrap_or_default();
        outcome
    }

    /// The folder in which the engine keeps a volume; none when we can't work on it.
    fn folder_of(&self, volume: &models::Volume) -> Result<Option<PathBuf>, RuntimeError> {
        if volume.driver != "local" {
            let problem = format!("it is kept by the driver {:?}; only local volumes can be copied", volume.driver);
            return Err(failed("open", &volume.name, &problem));
        }
        let is_root = std::fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0);
        let folder = PathBuf::from(&volume.mountpoint);
        let is_ours = is_root && self.host().starts_with("unix://") && folder.is_dir();
        Ok(is_ours.then_some(folder))
    }

    /// A new name in the spool folder.
    fn spool_path(&self, name: &str) -> Result<PathBuf, RuntimeError> {
        let spool = self.spool.as_ref().ok_or_else(|| {
            failed("open", name, &"this agent is not root and has no folder for a copy of it; run it as root")
        })?;
        let number = self.spooled.fetch_add(1, std::sync::atomic::Ordering::Relaxed);
        Ok(spool.join(format!("{name}-{number}")))
    }

    async fn download(&self, client: &Docker, name: &str) -> Result<SpoolTree, RuntimeError> {
        let folder = self.spool_path(name)?;
        let archive = folder.with_extension("tar");
        let making = archive.clone();
        let file = cara_env::blocking(move || {
            std::fs::create_dir_all(making.parent().unwrap_or(Path::new("/")))?;
            File::create(making)
        });
        let mut file = file.await.map_err(|error| failed("open", name, &error))?;
        let helper = self.mount(client, name).await?;
        let options = query::DownloadFromContainerOptions { path: format!("/{MOUNTED}") };
        let mut pieces = Box::pin(client.download_from_container(&helper, Some(options)));
        loop {
            let next = async { pieces.next().await.transpose() };
            let Some(piece) = self.within("read", name, PIECE_PAUSE, next).await? else { break };
            let writing = cara_env::blocking(move || file.write_all(&piece).map(|()| file));
            file = writing.await.map_err(|error| failed("copy", name, &error))?;
        }
        drop(pieces);
        self.remove(&helper).await?;
        let unpacking = cara_env::blocking(move || {
            let mut tree = SpoolTree::new(&folder)?;
            tar_to_tree(BufReader::new(File::open(&archive).map_err(pack_error)?), &mounted(), &mut tree)?;
            std::fs::remove_file(&archive).map_err(pack_error)?;
            Ok::<_, VolumeError>(tree)
        });
        unpacking.await.map_err(|error| failed("copy", name, &error))
    }

    /// Fills the volume anew, since an archive removes nothing, and reads it again: only what is in the volume counts.
    async fn upload(
        &self,
        client: &Docker,
        volume: &models::Volume,
        archive: &Path,
        given: Manifest,
    ) -> Result<(), RuntimeError> {
        let name = volume.name.as_str();
        let object = Object { name: name.to_owned(), labels: volume.labels.clone().into_iter().collect() };
        self.remove_volume(name).await?;
        self.ensure_volume(&object).await?;
        let helper = self.mount(client, name).await?;
        let path = archive.to_owned();
        let file = cara_env::blocking(move || File::open(path)).await.map_err(|error| failed("fill", name, &error))?;
        let patient = client.clone().with_timeout(UPLOAD); // The engine answers once it has everything.
        let options = query::UploadToContainerOptions { path: "/".into(), ..Default::default() };
        let sending = patient.upload_to_container(&helper, Some(options), bollard::body_stream(pieces(file)));
        self.within("fill", name, UPLOAD, sending).await?;
        self.remove(&helper).await?;
        let copy = self.download(client, name).await?;
        let found = cara_env::blocking(move || whole_seconds(&copy)).await;
        let found = found.map_err(|error| failed("read", name, &error))?;
        let Some(path) = given.first_difference(&found) else { return Ok(()) };
        let problem = format!("the engine did not store {path} as it was given; run the agent as root");
        Err(failed("fill", name, &problem))
    }

    /// A container that mounts the volume and is never started; its name. It carries no label of ours: to the planner, it
    /// doesn't exist.
    async fn mount(&self, client: &Docker, name: &str) -> Result<String, RuntimeError> {
        let images = client.list_images(None::<query::ListImagesOptions>);
        let images = self.within("open", name, ASK, images).await?;
        let image = images.into_iter().next().map(|image| image.id);
        let image =
            image.ok_or_else(|| failed("open", name, &"the engine has no image for a container that mounts it"))?;
        let helper = convert::helper_name(name);
        let options = query::CreateContainerOptions { name: Some(helper.clone()), ..Default::default() };
        let body = convert::helper(&image, name, &format!("/{MOUNTED}"));
        let create = async { client.create_container(Some(options), body).await.map(drop) };
        self.settle("open", name, CHANGE, &[409], create).await?; // One may be left from a copy that was cut off.
        Ok(helper)
    }
}

fn mounted() -> VolumePath {
    VolumePath::parse(MOUNTED.as_bytes()).expect("it is one plain name")
}

fn pieces(file: File) -> impl futures_util::Stream<Item = Bytes> + Send + 'static {
    futures_util::stream::unfold(file, |mut file| async move {
        let reading = cara_env::blocking(move || {
            let mut piece = Vec::with_capacity(PIECE_BYTES);
            // A piece that can't be read ends the archive early, and the engine refuses one without an end.
            (&mut file).take(PIECE_BYTES as u64).read_to_end(&mut piece).ok().filter(|read| *read > 0)?;
            Some((Bytes::from(piece), file))
        });
        reading.await
    })
}

/// What a tree holds, its times cut to whole seconds: an engine stores them whole, but gives them out like that.
fn whole_seconds(tree: &dyn Tree) -> Result<Manifest, VolumeError> {
    let found = Scanner::new(None, Default::default(), 0).run(tree)?;
    let mut entries = found.entries().to_vec();
    for entry in &mut entries {
        entry.meta.mtime_ns = entry.meta.mtime_ns.div_euclid(1_000_000_000) * 1_000_000_000;
    }
    Manifest::new(entries, found.changed())
}

fn pack_error(source: std::io::Error) -> VolumeError {
    VolumeError::Archive { operation: "spool", source }
}

fn failed(operation: &'static str, volume: &str, cause: &dyn std::fmt::Display) -> RuntimeError {
    RuntimeError::Failed { operation, subject: format!("volume {volume}"), cause: cause.to_string() }
}
