//! What is left on nodes that nothing wants.

use std::collections::BTreeSet;
use std::fmt;
use std::time::Duration;

use crate::{Finding, rules};

/// A kind of thing that an engine keeps.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// A container, running or not.
    Container,
    /// A volume.
    Volume,
    /// A network.
    Network,
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Container => "container",
            Self::Volume => "volume",
            Self::Network => "network",
        })
    }
}

/// A thing that is on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Left {
    /// The node.
    pub node: String,
    /// Which kind.
    pub kind: Kind,
    /// Its name there.
    pub name: String,
    /// Whose it is: a workload's id, by its label; empty without one.
    pub owner: String,
}

/// Something that a state wants on a node.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Wanted {
    /// The node.
    pub node: String,
    /// Which kind.
    pub kind: Kind,
    /// Whose: as [`Left::owner`].
    pub owner: String,
}

/// Things that nothing wants where they are. Leave out what isn't ours.
pub fn check(at: Duration, left: &[Left], wanted: &BTreeSet<Wanted>) -> Vec<Finding> {
    let is_wanted = |thing: &&Left| {
        wanted.contains(&Wanted { node: thing.node.clone(), kind: thing.kind, owner: thing.owner.clone() })
    };
    let orphans = left.iter().filter(|thing| !is_wanted(thing));
    orphans
        .map(|thing| {
            let of = match thing.owner.as_str() {
                "" => "of nobody".to_owned(),
                owner => format!("of {owner}"),
            };
            let text = format!("{} {} {of} is left, and nothing wants it there", thing.kind, thing.name);
            Finding::new(at, rules::ORPHANS, &thing.node, text)
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_wanted_passes_and_what_is_not_is_found() {
        let left =
            |node: &str, kind, owner: &str| Left { node: node.into(), kind, name: "x".into(), owner: owner.into() };
        let wanted = [Wanted { node: "n1".into(), kind: Kind::Volume, owner: "u".into() }].into();
        let good = [left("n1", Kind::Volume, "u"), left("n1", Kind::Volume, "u")];
        assert_eq!(check(Duration::ZERO, &good, &wanted), Vec::new());
        let bad = [
            left("n2", Kind::Volume, "u"),
            left("n1", Kind::Container, "u"),
            left("n1", Kind::Network, "gone"),
            left("n1", Kind::Volume, ""),
        ];
        let findings = check(Duration::ZERO, &bad, &wanted);
        assert_eq!(findings.len(), bad.len());
        assert_eq!(findings[2].text, "network x of gone is left, and nothing wants it there");
    }
}
