//! `logs`: what a workload's container writes.

use serde_json::Value;

use super::{Context, get, segment};
use crate::cli::Logs;
use crate::client::{Client, ClientError};
use crate::failure::{Failure, Outcome, exit};
use crate::kind::Kind;

/// Times that a broken stream is opened again in a row without a byte in between.
const REOPEN_MAX: u32 = 5;
/// Bytes of a line that is compared; a longer one may be printed twice.
const LINE_BYTES_MAX: usize = 64 << 10;

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
    let mut seam = Seam::default();
    loop {
        let mut query = vec![format!("follow={}", args.follow), format!("timestamps={}", args.timestamps)];
        query.extend(tail.map(|n| format!("tail={n}")));
        let mut stream = client.open(&format!("{path}?{}", query.join("&"))).await?;
        let error = loop {
            match stream.next().await {
                Ok(Some(bytes)) => {
                    broken = 0;
                    cx.ui.bytes(&seam.take(&bytes));
                }
                Ok(None) => {
                    cx.ui.bytes(&seam.rest());
                    return Ok(());
                }
                Err(error) => break error,
            }
        };
        if !args.follow {
            return Err(error.into());
        }
        if !matches!(error, ClientError::Quiet(_)) {
            broken += 1;
            if broken > REOPEN_MAX {
                return Err(error.into());
            }
            cx.ui.note(&format!(
                "note: {error}; following on from the last line, what was written meanwhile may be missing"
            ));
        }
        tail = Some(1); // The fewest that can be asked for.
        seam.reopened();
    }
}

/// Joins a stream that is opened again to what was printed: the one line that comes again is left out.
#[derive(Debug, Default)]
struct Seam {
    /// The last whole line and what came of the next one.
    last: Vec<u8>,
    partial: Vec<u8>,
    /// What came since the stream was opened again, until its first line is whole.
    held: Option<Vec<u8>>,
}

impl Seam {
    fn reopened(&mut self) {
        self.partial.clear(); // A line that broke off in the middle comes again as a whole.
        self.held = Some(Vec::new());
    }

    /// What is to be printed of new bytes.
    fn take(&mut self, bytes: &[u8]) -> Vec<u8> {
        let mut new = bytes.to_vec();
        if let Some(mut held) = self.held.take() {
            held.append(&mut new);
            let Some(end) = held.iter().position(|b| *b == b'\n') else {
                if held.len() < LINE_BYTES_MAX {
                    self.held = Some(held);
                    return Vec::new();
                }
                return held;
            };
            let repeated = held[..end] == self.last[..];
            new = if repeated { held.split_off(end + 1) } else { held };
        }
        for byte in &new {
            if *byte == b'\n' {
                self.last = std::mem::take(&mut self.partial);
            } else if self.partial.len() < LINE_BYTES_MAX {
                self.partial.push(*byte);
            }
        }
        new
    }

    /// What was held back when the stream ended.
    fn rest(&mut self) -> Vec<u8> {
        self.held.take().unwrap_or_default()
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_stream_that_is_opened_again_repeats_no_line() {
        let mut seam = Seam::default();
        assert_eq!(seam.take(b"one\ntw"), b"one\ntw");
        assert_eq!(seam.take(b"o\n"), b"o\n");
        seam.reopened();
        assert_eq!(seam.take(b"tw"), b"");
        assert_eq!(seam.take(b"o\nthree\n"), b"three\n");
        seam.reopened();
        assert_eq!(seam.take(b"four\n"), b"four\n", "written while nobody listened");
        seam.reopened();
        seam.reopened();
        assert_eq!(seam.take(b"four\n"), b"");
        assert_eq!(seam.take(b"four\n"), b"four\n", "the same line, written again");
    }

    #[test]
    fn what_has_no_end_of_line_is_not_lost() {
        let mut seam = Seam::default();
        assert_eq!(seam.take(b"one\n"), b"one\n");
        seam.reopened();
        assert_eq!(seam.take(b"tw"), b"");
        assert_eq!(seam.rest(), b"tw");
    }
}
