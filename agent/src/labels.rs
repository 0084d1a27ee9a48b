//! How objects in the engine say whose they are. Only what carries all labels of an [`Owner`] may be changed.

use std::collections::BTreeMap;

use cara_proto::workload::{Assignment, Service};
use prost::Message;

/// Labels of a container, network or volume.
pub type Labels = BTreeMap<String, String>;

/// Id of the cluster.
pub const CLUSTER: &str = "cara.cluster";
/// Id of the node: several agents may share one engine.
pub const NODE: &str = "cara.node";
/// Name of the workload, for people.
pub const WORKLOAD: &str = "cara.workload";
/// Uid of the workload.
pub const UID: &str = "cara.uid";
/// Name of the service; containers only.
pub const SERVICE: &str = "cara.service";
/// Generation of the placement that made the object.
pub const GENERATION: &str = "cara.generation";
/// Hash of what the container was made from; a container with another hash is made anew.
pub const SPEC: &str = "cara.spec";
/// Name of the volume in the workload; volumes only.
pub const VOLUME: &str = "cara.volume";
/// `true` on volumes that go with their workload.
pub const EPHEMERAL: &str = "cara.ephemeral";
/// Generation under which a volume's content was made; volumes only, absent on those of older agents.
pub const DATA_GENERATION: &str = "cara.data-generation";
/// `true` on volumes that were made to be filled by a transfer.
pub const STAGED: &str = "cara.staged";

/// Characters of a hash in names: 32 bits tell apart what has the same workload and part name.
const HASH_CHARS: usize = 8;
/// Characters of the spec hash: 64 bits, since a collision would leave an old container running.
const SPEC_CHARS: usize = 16;
/// A workload's name takes at most this much of an object's name; engines allow 255 for all of it.
const NAME_CHARS: usize = 100;

/// Whose objects an agent may touch.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Owner {
    /// Id of the cluster.
    pub cluster_id: String,
    /// Id of the node.
    pub node_id: String,
}

impl Owner {
    /// What every object of ours carries; also the filter for listings.
    pub fn labels(&self) -> Labels {
        BTreeMap::from([(CLUSTER.to_owned(), self.cluster_id.clone()), (NODE.to_owned(), self.node_id.clone())])
    }

    /// Does an object with these labels belong to us?
    pub fn owns(&self, labels: &Labels) -> bool {
        labels.get(CLUSTER) == Some(&self.cluster_id)
            && labels.get(NODE) == Some(&self.node_id)
            && labels.contains_key(UID)
    }

    /// The labels of an object that serves this assignment.
    pub fn assigned(&self, assignment: &Assignment) -> Labels {
        let mut labels = self.labels();
        labels.insert(WORKLOAD.to_owned(), assignment.name.clone());
        labels.insert(UID.to_owned(), assignment.uid.clone());
        labels.insert(GENERATION.to_owned(), assignment.generation.to_string());
        labels
    }

    /// An object's name. The hash makes it unambiguous (`a-b` and `c`, `a` and `b-c`) and keeps apart nodes and clusters
    /// that share an engine; it does not change with the generation, so that a volume stays the same volume.
    pub fn object_name(&self, assignment: &Assignment, part: &str) -> String {
        let identity = format!("{}\n{}\n{}\n{part}", self.cluster_id, self.node_id, assignment.uid);
        let part = if part.is_empty() { String::new() } else { format!("-{part}") };
        name(assignment, &part, &identity)
    }

    /// A volume's name. It holds the data generation, so that a copy never touches what lay here before; 0 is a workload of
    /// an older server, whose volumes keep the name that they have.
    pub fn volume_name(&self, assignment: &Assignment, volume: &str) -> String {
        let data_generation = assignment.data_generation;
        if data_generation == 0 {
            return self.object_name(assignment, volume);
        }
        let (cluster, node, uid) = (&self.cluster_id, &self.node_id, &assignment.uid);
        let identity = format!("{cluster}\n{node}\n{uid}\n{volume}\n{data_generation}");
        name(assignment, &format!("-{volume}-g{data_generation}"), &identity)
    }

    /// The labels of a volume of this assignment.
    pub fn volume_labels(&self, assignment: &Assignment, volume: &str, ephemeral: bool) -> Labels {
        let mut labels = self.assigned(assignment);
        labels.insert(VOLUME.to_owned(), volume.to_owned());
        labels.insert(EPHEMERAL.to_owned(), ephemeral.to_string());
        if assignment.data_generation != 0 {
            labels.insert(DATA_GENERATION.to_owned(), assignment.data_generation.to_string());
        }
        labels
    }
}

fn name(assignment: &Assignment, part: &str, identity: &str) -> String {
    let hash = cara_transport::fingerprint(identity.as_bytes());
    let name: String = assignment.name.chars().take(NAME_CHARS).collect();
    format!("cara-{name}{part}-{}", &hash[..HASH_CHARS])
}

/// Do two objects belong to the same part of the same workload of the same cluster and node? The generation may differ.
pub(crate) fn same_owner(one: &Labels, other: &Labels) -> bool {
    [CLUSTER, NODE, UID, SERVICE, VOLUME].iter().all(|key| one.get(*key) == other.get(*key))
}

/// The hash of what a service's container is made from. How it is probed is no part of that.
pub fn spec_hash(service: &Service) -> String {
    let made_from = Service { health_check: None, ..service.clone() };
    cara_transport::fingerprint(&made_from.encode_to_vec())[..SPEC_CHARS].to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn owner() -> Owner {
        Owner { cluster_id: "c1".into(), node_id: "n1".into() }
    }

    fn assignment(uid: &str, name: &str) -> Assignment {
        Assignment { uid: uid.into(), name: name.into(), ..Assignment::default() }
    }

    #[test]
    fn names_that_read_the_same_differ_by_hash() {
        let one = owner().object_name(&assignment("u1", "a-b"), "c");
        let two = owner().object_name(&assignment("u2", "a"), "b-c");
        assert_ne!(one, two);
        assert!(one.starts_with("cara-a-b-c-"), "{one}");
    }

    #[test]
    fn a_name_survives_a_new_generation() {
        let first = owner().object_name(&Assignment { generation: 1, ..assignment("u", "db") }, "data");
        let later = owner().object_name(&Assignment { generation: 9, ..assignment("u", "db") }, "data");
        assert_eq!(first, later);
    }

    #[test]
    fn a_volume_of_another_data_generation_is_another_volume() {
        let name =
            |data_generation| owner().volume_name(&Assignment { data_generation, ..assignment("u", "db") }, "data");
        assert_eq!(name(0), owner().object_name(&assignment("u", "db"), "data"), "what older agents made stays in use");
        assert!(name(7).starts_with("cara-db-data-g7-"), "{}", name(7));
        assert_ne!(name(7), name(8));
        // The name of a volume must not be that of another volume whose name ends like a generation.
        let other = owner().object_name(&assignment("u", "db"), "data-g7");
        assert_ne!(name(7), other);
    }

    #[test]
    fn how_a_service_is_probed_doesn_t_make_it_another_container() {
        let probed = Service { health_check: Some(Default::default()), ..Service::default() };
        assert_eq!(spec_hash(&probed), spec_hash(&Service::default()));
    }

    #[test]
    fn another_node_or_cluster_owns_nothing_here() {
        let labels = owner().assigned(&assignment("u", "a"));
        assert!(owner().owns(&labels));
        assert!(!Owner { node_id: "n2".into(), ..owner() }.owns(&labels));
        assert!(!Owner { cluster_id: "c2".into(), ..owner() }.owns(&labels));
        assert!(!owner().owns(&owner().labels()), "without a uid it is nobody's");
    }
}
