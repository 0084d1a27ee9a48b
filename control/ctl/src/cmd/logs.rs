//! `logs`: what a workload's container writes.

use serde_json::Value;

use super::{Context, get, segment};
use crate::cli::Logs;
use crate::client::{Client, ClientError};
use crate::failure::{Failure, Outcome, exit};
use crate::kind::Kind;

/// Times that a broken stream is opened again in a row without a byte in between.
const REOPEN_MAX: u32 = 5;

pub(super) async fn run(cx: &Context, args: &Logs) -> Outcome {
    let client = cx.client()?;
    let (kind, name, service) = find(cx, &client, &args.target).await?;
    // Without a service the cluster takes the only one, or says which there are.
    let service = service.map(|service| format!("/{}", segment(&service))).unwrap_or_default();
    let path = format!("{}/{}/logs{service}", kind.path(), segment(&name));
    let reading = follow(cx, &client, &path, args);
    tokio::select! {
        biased;
        result = reading => result,
        _ = tokio::signal::ctrl_c() => Ok(()), // Nothing is under way that would go on.
    }
}

async fn follow(cx: &Context, client: &Client, path: &str, args: &Logs) -> Outcome {
    let mut tail = args.tail;
    let mut broken = 0;
    loop {
        let mut query = vec![format!("follow={}", args.follow), format!("timestamps={}", args.timestamps)];
        query.extend(tail.map(|n| format!("tail={n}")));
        let mut stream = client.open(&format!("{path}?{}", query.join("&"))).await?;
        let error = loop {
            match stream.next().await {
                Ok(Some(bytes)) => {
                    broken = 0;
                    cx.ui.bytes(&bytes);
                }
                Ok(None) => return Ok(()),
                Err(error) => break error,
            }
        };
        broken += 1;
        let silent = matches!(&error, ClientError::Interrupted(why) if why.starts_with("silent"));
        if !args.follow || (broken > REOPEN_MAX && !silent) {
            return Err(error.into());
        }
        if !silent {
            cx.ui.note(&format!(
                "note: {error}; following on from the last line, what was written meanwhile may be missing"
            ));
        }
        tail = Some(1); // The fewest that can be asked for.
    }
}

/// Splits `WORKLOAD[/SERVICE]`, `KIND/WORKLOAD[/SERVICE]`. A workload goes before a kind of the same word.
async fn find(cx: &Context, client: &Client, target: &str) -> Outcome<(Kind, String, Option<String>)> {
    let parts: Vec<&str> = target.split('/').collect();
    if parts.iter().any(|part| part.is_empty()) || parts.len() > 3 {
        return Err(Failure::usage(format!("{target:?} is no workload")).next("caractrl logs WORKLOAD[/SERVICE]"));
    }
    if parts.len() == 3 {
        return Ok((parts[0].parse()?, parts[1].to_owned(), Some(parts[2].to_owned())));
    }
    let service = parts.get(1).map(|s| (*s).to_owned());
    let mut found = Vec::new();
    for kind in Kind::WORKLOADS {
        match client.get::<Value>(&format!("{}/{}", kind.path(), segment(parts[0]))).await {
            Ok(_) => found.push(kind),
            Err(error) if error.status() == Some(404) => {}
            Err(error) => return Err(error.into()),
        }
    }
    match (found.as_slice(), Kind::find(parts[0]), service) {
        ([kind], _, service) => Ok((*kind, parts[0].to_owned(), service)),
        ([], Some(kind), Some(name)) => Ok((kind, name, None)),
        ([], _, _) => Err(get::object(cx, client, Kind::Workload, parts[0]).await.err().unwrap_or_else(|| {
            Failure::new(exit::NOT_FOUND, "not-found", format!("there is no workload {:?}", parts[0]))
        })),
        (several, ..) => {
            let choices: Vec<String> =
                several.iter().map(|k| format!("caractrl logs {}/{target}", k.singular())).collect();
            Err(Failure::new(exit::CONFLICT, "ambiguous", format!("several workloads are called {:?}", parts[0]))
                .next(choices.join("\n")))
        }
    }
}
