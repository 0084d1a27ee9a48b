//! `nodes lost`: gives up a machine that never comes back.

use cara_proto::rest::{GivenUp, LostRequest, LostView};
use serde_json::Value;

use crate::cli::Lost as Words;
use crate::client::{Client, ClientError};
use crate::cmd::{Context, answer, with_suggestion};
use crate::failure::{Failure, Outcome, exit};
use crate::kind::Kind;
use crate::out::clean;

pub(super) async fn run(cx: &Context, client: &Client, words: &Words) -> Outcome {
    let path = super::path(&words.node, "/lost");
    let body = LostRequest { confirm: words.confirm, reason: words.reason.clone().unwrap_or_default() };
    let done = match client.post(&path, &body).await {
        Ok(done) => done,
        Err(error) => {
            let unconfirmed = !words.confirm && asks_to_confirm(&error);
            let failure = Failure::from(error);
            if unconfirmed {
                return Err(not_confirmed(&words.node, failure));
            }
            return Err(with_suggestion(client, Kind::Node, &words.node, failure).await);
        }
    };
    let value: Value = done.json()?;
    for item in &answer::typed::<LostView>(&value)?.given_up {
        cx.ui.note(&given_up(item));
    }
    let node = format!("node/{}", words.node);
    answer::one(cx, &value, &node, &format!("{node} is given up"))
}

/// The server's question, as opposed to a refusal that a confirmation would not change, such as a node that is online.
fn asks_to_confirm(error: &ClientError) -> bool {
    matches!(error, ClientError::Problem(problem) if problem.code == "confirmation-needed")
}

/// What would be given up, and the one command that does it. Nothing was changed, and the exit code says so.
fn not_confirmed(node: &str, failure: Failure) -> Failure {
    Failure::new(exit::OTHER, "not-confirmed", failure.what)
        .why(failure.why)
        .next(format!("if the machine never comes back: caractrl nodes lost {node} --confirm"))
}

/// `given up: database/ledger (data, wal)`.
fn given_up(item: &GivenUp) -> String {
    let volumes = item.volumes.join(", ");
    let volumes = if volumes.is_empty() { String::new() } else { format!(" ({volumes})") };
    clean(&format!("given up: {}/{}{volumes}", item.kind, item.name))
}

#[cfg(test)]
mod tests {
    use cara_proto::rest::Problem;

    use super::*;

    #[test]
    fn a_question_is_told_from_a_refusal() {
        let problem = |status, code: &str| {
            ClientError::Problem(Box::new(Problem { status, code: code.into(), ..Problem::default() }))
        };
        assert!(asks_to_confirm(&problem(409, "confirmation-needed")));
        assert!(!asks_to_confirm(&problem(409, "node-online")));
        assert!(!asks_to_confirm(&problem(404, "unknown-node")));
        let failure = not_confirmed("w3", Failure::new(4, "x", "database/ledger (volume data) is only on w3"));
        assert_eq!((failure.exit, failure.code.as_str()), (1, "not-confirmed"));
        assert!(failure.what.contains("database/ledger") && failure.next.ends_with("caractrl nodes lost w3 --confirm"));
    }

    #[test]
    fn what_is_given_up_is_named_with_its_volumes() {
        let item =
            GivenUp { kind: "database".into(), name: "ledger".into(), volumes: vec!["data".into(), "wal".into()] };
        assert_eq!(given_up(&item), "given up: database/ledger (data, wal)");
        assert_eq!(given_up(&GivenUp { volumes: vec![], ..item }), "given up: database/ledger");
    }
}
