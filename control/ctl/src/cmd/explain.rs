//! `explain`: what this program's own error codes mean, and what a manifest of a kind looks like. Problems of the API
//! carry their explanation with them.

use super::Context;
use crate::failure::{Failure, Outcome, exit};
use crate::kind::Kind;
use crate::suggest::closest;

const CODES: [(&str, &str); 19] = [
    ("usage", "The command line or a file is wrong. Nothing was sent."),
    ("access", "It is not clear how to reach the cluster: address, token or CA fingerprint is missing or malformed."),
    ("no-cluster", "No server is known. Give --server, set CARA_SERVERS, or save a context with `caractrl ctx set`."),
    ("no-context", "The named context is not in the contexts file."),
    ("config", "The contexts file can't be read or written."),
    (
        "unreachable",
        "No server answered before the deadline (--timeout). The cluster itself may be well: containers keep running \
         without any server.",
    ),
    (
        "untrusted",
        "A server answered with a certificate that the pinned CA did not sign. Either the fingerprint is of another \
         cluster, or somebody else answers at this address. The token was not sent.",
    ),
    (
        "outcome-unknown",
        "A change was sent, and its answer was lost. The cluster carries it out once or not at all; look before you \
         repeat it.",
    ),
    ("malformed-answer", "What came back is not the API of cara-server, or of a version that this program can't read."),
    ("interrupted", "A stream (logs, watch) broke off."),
    ("timeout", "The time to wait is over. What was asked for goes on in the cluster."),
    ("detached", "Waiting was ended with Ctrl-C. What was asked for goes on in the cluster."),
    (
        "workload-failed",
        "The agent could not run the workload. `caractrl describe` says why, `caractrl logs` what it wrote.",
    ),
    (
        "not-confirmed",
        "What needs an agreement did not get it: a deletion, a move, or giving up a node's data. Nothing was changed.",
    ),
    (
        "move-rolled-back",
        "A step of the move failed for good or was cancelled, and the node that had the workload has it again. \
         `caractrl nodes moves ID` shows every step.",
    ),
    (
        "move-failed",
        "The move failed, and the way back failed as well. The workload never runs twice, so it may not run at all; \
         `caractrl nodes moves ID` shows what stands in the way.",
    ),
    (
        "drain-failed",
        "Something stays on the node: a move failed, or no other node can take it. The node stays cordoned, and what \
         has moved stays where it is now. Draining again goes on with the rest.",
    ),
    ("drain-cancelled", "Somebody ended the drain. The node stays cordoned, and what has moved stays where it is now."),
    ("no-drain", "There is no running drain that could be followed."),
];

/// A manifest of each kind that can be applied: the examples that `deploy/examples` has, so that they are checked.
fn example(kind: Kind) -> Option<&'static str> {
    match kind {
        Kind::Node => Some(include_str!("../../../../deploy/examples/node.yaml")),
        Kind::App => Some(include_str!("../../../../deploy/examples/hello.yaml")),
        Kind::Project => Some(include_str!("../../../../deploy/examples/shop.yaml")),
        Kind::Database => Some(include_str!("../../../../deploy/examples/database.yaml")),
        Kind::Workload | Kind::Server | Kind::Token | Kind::ApiToken => None,
    }
}

pub(super) fn run(cx: &Context, code: &str) -> Outcome {
    let code = code.trim_start_matches("error").trim_matches(['[', ']', ':']);
    if let Some((_, text)) = CODES.iter().find(|(name, _)| *name == code) {
        cx.ui.data(text);
        return Ok(());
    }
    if let Some(text) = Kind::find(code).and_then(example) {
        cx.ui.data(text);
        return Ok(());
    }
    let names: Vec<&str> = CODES.iter().map(|(name, _)| *name).collect();
    let kinds = Kind::WORKLOADS.iter().chain([&Kind::Node]).map(|kind| kind.singular());
    let next = match closest(code, names.iter().copied().chain(kinds)) {
        Some(close) => format!("did you mean {close:?}?"),
        None => {
            format!("codes explained here: {}; others come from the servers with their own next step", names.join(", "))
        }
    };
    Err(Failure::new(exit::NOT_FOUND, "no-code", format!("there is no explanation of {code:?}")).next(next))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::manifest;

    #[test]
    fn the_examples_are_right_and_of_their_kind() {
        for kind in [Kind::Node, Kind::App, Kind::Project, Kind::Database] {
            let (good, bad) = manifest::parse("example", example(kind).expect("an example"));
            assert_eq!(bad, [], "{kind:?}");
            assert!(good.iter().any(|manifest| manifest.kind == kind), "{kind:?}");
        }
    }
}
