//! `apply`: create, or change what exists.

use serde_json::Value;

use super::{Context, segment};
use crate::cli::{Apply, DryRun};
use crate::client::Client;
use crate::failure::{Failure, Outcome};
use crate::kind::Kind;
use crate::manifest::{self, Manifest};
use crate::out::Format;
use crate::view::text;
use crate::wait;

pub(super) async fn run(cx: &Context, args: &Apply) -> Outcome {
    let manifests = manifest::load(&args.filename)?;
    if args.dry_run == Some(DryRun::Client) {
        for manifest in &manifests {
            cx.ui.data(&format!("{} is well formed (not sent)", manifest.title()));
        }
        return Ok(());
    }
    let client = cx.client()?;
    let mut applied = Vec::new();
    for manifest in &manifests {
        let (object, how) = one(&client, manifest).await.map_err(|failure| place(manifest, failure))?;
        said(cx, manifest, how);
        applied.push((manifest.kind, manifest.name.clone(), object));
    }
    if args.wait {
        for (kind, name, object) in &mut applied {
            if *kind != Kind::Node {
                *object = wait::until_running(cx, &client, *kind, name, object).await?;
            }
        }
    }
    if cx.ui.structured() {
        let mut objects: Vec<Value> = applied.into_iter().map(|(_, _, object)| object).collect();
        let value = if objects.len() == 1 { objects.remove(0) } else { Value::Array(objects) };
        return cx.ui.value(&value);
    }
    Ok(())
}

fn said(cx: &Context, manifest: &Manifest, how: &str) {
    match cx.ui.format {
        Format::Json | Format::Yaml => cx.ui.note(&format!("{} {how}", manifest.title())),
        Format::Name => cx.ui.data(&manifest.title()),
        Format::Table | Format::Wide => cx.ui.data(&format!("{} {how}", manifest.title())),
    }
}

/// Says which document a refusal is about, and what became of the ones after it.
fn place(manifest: &Manifest, failure: Failure) -> Failure {
    failure.during(&format!("{}: {}", manifest.place, manifest.title()))
}

/// POST; when the name is taken, PUT.
async fn one(client: &Client, manifest: &Manifest) -> Outcome<(Value, &'static str)> {
    let collection = manifest.kind.path();
    let refused = match client.post(collection, &manifest.body).await {
        Ok(answer) => return Ok((answer.json()?, "created")),
        Err(error) if error.status() == Some(409) => error,
        Err(error) => return Err(error.into()),
    };
    let path = format!("{collection}/{}", segment(&manifest.name));
    let before: Value = match client.get(&path).await {
        Ok(before) => before,
        Err(error) if error.status() == Some(404) => return Err(refused.into()), // The conflict was about something else.
        Err(error) => return Err(error.into()),
    };
    let after: Value = client.put(&path, &manifest.body).await?.json()?;
    let how = if same(&before, &after) { "unchanged" } else { "configured" };
    Ok((after, how))
}

/// Do two answers say the same about everything that people write?
fn same(before: &Value, after: &Value) -> bool {
    let written = ["/metadata/labels", "/metadata/annotations", "/spec"];
    text(before, "/metadata/uid") == text(after, "/metadata/uid")
        && written.iter().all(|pointer| before.pointer(pointer) == after.pointer(pointer))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_people_write_counts_as_a_change() {
        let object = |image: &str, revision: u64| {
            json!({
                "metadata": { "uid": "u", "resourceVersion": revision },
                "spec": { "image": image },
                "status": { "phase": revision },
            })
        };
        assert!(same(&object("a", 1), &object("a", 2)));
        assert!(!same(&object("a", 1), &object("b", 2)));
    }
}
