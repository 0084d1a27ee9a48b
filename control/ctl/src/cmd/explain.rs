//! `explain`: what this program's own error codes mean. Problems of the API carry their explanation with them.

use super::Context;
use crate::failure::{Failure, Outcome, exit};
use crate::suggest::closest;

const CODES: [(&str, &str); 14] = [
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
    ("not-confirmed", "A deletion was not confirmed by typing the name. Nothing was changed."),
];

pub(super) fn run(cx: &Context, code: &str) -> Outcome {
    let code = code.trim_start_matches("error").trim_matches(['[', ']', ':']);
    if let Some((_, text)) = CODES.iter().find(|(name, _)| *name == code) {
        cx.ui.data(text);
        return Ok(());
    }
    let names: Vec<&str> = CODES.iter().map(|(name, _)| *name).collect();
    let next = match closest(code, names.iter().copied()) {
        Some(close) => format!("did you mean {close:?}?"),
        None => {
            format!("codes explained here: {}; others come from the servers with their own next step", names.join(", "))
        }
    };
    Err(Failure::new(exit::NOT_FOUND, "no-code", format!("there is no explanation of {code:?}")).next(next))
}
