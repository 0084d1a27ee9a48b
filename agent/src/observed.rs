//! What of ours exists in the engine, sorted by workload. Whatever lacks our labels is invisible from here on.

use std::collections::BTreeMap;

use crate::labels::{self, Labels, Owner};
use crate::runtime::{ContainerInfo, Listing, Object};

/// Everything of ours, by workload uid.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Observed {
    /// By uid.
    pub workloads: BTreeMap<String, Footprint>,
}

/// What exists of one workload.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Footprint {
    /// Its containers, by name.
    pub containers: Vec<Held>,
    /// Names of its networks.
    pub networks: Vec<String>,
    /// Its volumes, of all data generations, by name.
    pub volumes: Vec<StoredVolume>,
}

impl Footprint {
    /// True when nothing is left that has to go with the workload.
    pub fn is_gone(&self) -> bool {
        let only_containers = cara_env::planted("orphan-not-removed");
        let rest = || self.networks.is_empty() && self.ephemeral_volumes().next().is_none();
        self.containers.is_empty() && (only_containers || rest())
    }

    /// The volumes that go with the workload.
    pub fn ephemeral_volumes(&self) -> impl Iterator<Item = &StoredVolume> {
        self.volumes.iter().filter(|volume| volume.ephemeral)
    }

    /// The volumes that stay.
    pub fn managed_volumes(&self) -> impl Iterator<Item = &StoredVolume> {
        self.volumes.iter().filter(|volume| !volume.ephemeral)
    }

    /// Does a volume of this name exist?
    pub fn has_volume(&self, name: &str) -> bool {
        self.volumes.iter().any(|volume| volume.name == name)
    }
}

/// A volume of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredVolume {
    /// In the engine.
    pub name: String,
    /// Name of the workload when the volume was made.
    pub workload: String,
    /// Name in the workload's spec.
    pub volume: String,
    /// The placement that made it.
    pub generation: u64,
    /// The generation under which its content was made; 0 on volumes of older agents.
    pub data_generation: u64,
    /// It goes with the workload.
    pub ephemeral: bool,
}

/// A container of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Held {
    /// Its service.
    pub service: String,
    /// The placement that made it.
    pub generation: u64,
    /// Hash of what it was made from.
    pub spec: String,
    /// What the engine says.
    pub info: ContainerInfo,
}

impl Observed {
    /// Sorts a listing. Labels are checked again here, so that a fault in the engine's filter can't reach a foreign
    /// object; a container whose generation can't be read counts as the oldest.
    pub fn of(owner: &Owner, listing: &Listing) -> Self {
        let mut observed = Self::default();
        for info in listing.containers.iter().filter(|c| owner.owns(&c.labels)) {
            let text = |key: &str| info.labels.get(key).cloned().unwrap_or_default();
            let held = Held {
                service: text(labels::SERVICE),
                generation: text(labels::GENERATION).parse().unwrap_or_default(),
                spec: text(labels::SPEC),
                info: info.clone(),
            };
            observed.footprint(&info.labels).containers.push(held);
        }
        for Object { name, labels } in listing.networks.iter().filter(|o| owner.owns(&o.labels)) {
            observed.footprint(labels).networks.push(name.clone());
        }
        for Object { name, labels } in listing.volumes.iter().filter(|o| owner.owns(&o.labels)) {
            let text = |key: &str| labels.get(key).cloned().unwrap_or_default();
            let volume = StoredVolume {
                name: name.clone(),
                workload: text(labels::WORKLOAD),
                volume: text(labels::VOLUME),
                generation: text(labels::GENERATION).parse().unwrap_or_default(),
                data_generation: text(labels::DATA_GENERATION).parse().unwrap_or_default(),
                ephemeral: text(labels::EPHEMERAL) == "true",
            };
            observed.footprint(labels).volumes.push(volume);
        }
        observed
    }

    fn footprint(&mut self, labels: &Labels) -> &mut Footprint {
        self.workloads.entry(labels.get(labels::UID).cloned().unwrap_or_default()).or_default()
    }
}
