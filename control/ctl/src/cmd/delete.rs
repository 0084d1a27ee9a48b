//! `delete`: ask for it, then wait until it is gone.

use serde_json::Value;

use super::{Context, get, nodes, segment, target};
use crate::cli::Delete;
use crate::client::Client;
use crate::failure::{Failure, Outcome};
use crate::kind::Kind;
use crate::manifest;
use crate::view::text;
use crate::wait;

pub(super) async fn run(cx: &Context, args: &Delete) -> Outcome {
    let targets = targets(args)?;
    let client = cx.client()?;
    for (kind, name) in targets {
        match kind {
            Kind::Node => nodes::delete(cx, &client, &name, args.yes).await?,
            Kind::Token | Kind::ApiToken => {
                client.delete(&format!("{}/{}", kind.path(), segment(&name))).await?;
                cx.ui.data(&format!("{}/{name} revoked", kind.singular()));
            }
            _ => workload(cx, &client, kind, &name, args).await?,
        }
    }
    Ok(())
}

fn targets(args: &Delete) -> Outcome<Vec<(Kind, String)>> {
    let Some(word) = &args.kind else {
        let manifests = manifest::load(&args.filename)?;
        return Ok(manifests.into_iter().rev().map(|m| (m.kind, m.name)).collect());
    };
    let mut targets = Vec::new();
    if word.contains('/') {
        for word in std::iter::once(word).chain(&args.names) {
            let (kind, name) = target(word, None)?;
            targets.push((kind, name.unwrap_or_default()));
        }
    } else {
        let kind: Kind = word.parse()?;
        targets.extend(args.names.iter().map(|name| (kind, name.clone())));
    }
    if targets.is_empty() || targets.iter().any(|(_, name)| name.is_empty()) {
        return Err(Failure::usage("delete what? A name is missing").next("caractrl delete app NAME"));
    }
    if targets.iter().any(|(kind, _)| *kind == Kind::Server) {
        return Err(Failure::usage("servers are removed, not deleted").next("caractrl servers remove NAME"));
    }
    Ok(targets)
}

async fn workload(cx: &Context, client: &Client, kind: Kind, name: &str, args: &Delete) -> Outcome {
    // Read first: the uid tells this object from a later one of the same name, and "no such app" gets its suggestion.
    let object = get::object(cx, client, kind, name).await?;
    let kind = Kind::from_title(&text(&object, "/kind")).unwrap_or(kind);
    let query = if args.force { "?force=true" } else { "" };
    let answer = client.delete(&format!("{}/{}{query}", kind.path(), segment(name))).await?;
    let title = format!("{}/{name}", kind.singular());
    if answer.status != 202 {
        cx.ui.data(&format!("{title} deleted"));
        return Ok(());
    }
    if args.detach {
        cx.ui.data(&format!("{title} is being deleted"));
        return Ok(());
    }
    let uid = uid(&answer.json().unwrap_or_default(), &object);
    wait::until_gone(cx, client, kind, name, &uid).await?;
    cx.ui.data(&format!("{title} deleted"));
    Ok(())
}

fn uid(answer: &Value, object: &Value) -> String {
    let uid = text(answer, "/metadata/uid");
    if uid.is_empty() { text(object, "/metadata/uid") } else { uid }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn args(kind: &str, names: &[&str]) -> Delete {
        Delete {
            kind: Some(kind.to_owned()),
            names: names.iter().map(|n| (*n).to_owned()).collect(),
            filename: Vec::new(),
            force: false,
            detach: false,
            wait: false,
            yes: false,
        }
    }

    #[test]
    fn targets_in_all_forms() {
        let app = |name: &str| (Kind::App, name.to_owned());
        assert_eq!(targets(&args("app", &["a", "b"])), Ok(vec![app("a"), app("b")]));
        assert_eq!(targets(&args("app/a", &["node/n"])), Ok(vec![app("a"), (Kind::Node, "n".to_owned())]));
        for (kind, names) in [("app", &[][..]), ("app/a", &["b"]), ("server", &["s1"]), ("ap", &["x"])] {
            assert_eq!(targets(&args(kind, names)).map_err(|f| f.exit), Err(2), "{kind}");
        }
    }
}
