//! One document: which kind it is, and whether it is right. The shapes are the types of `cara-proto`, which refuse
//! unknown fields; the limits keep alias bombs and endless nesting from costing more than a moment.

use std::borrow::Cow;

use cara_proto::rest::{API_VERSION, NodeManifest, WorkloadManifest};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_saphyr::{Location, Spanned};

use super::rules;
use super::split::{Document, split};
use super::{Flaw, Manifest};
use crate::kind::Kind;
use crate::suggest::closest;

/// Bytes of one document: the cluster takes no larger entry.
const DOCUMENT_BYTES_MAX: usize = 1 << 20;
/// Nesting; a manifest needs 8.
const DEPTH_MAX: usize = 32;
/// Values in one document, aliases written out; far more than the server's own limits allow.
const NODES_MAX: usize = 50_000;
/// Kinds that can be written in a manifest.
const KINDS: [&str; 4] = ["Node", "App", "Project", "Database"];

/// What decides how the rest is read.
#[derive(Deserialize)]
struct Head {
    #[serde(rename = "apiVersion")]
    api_version: Option<Spanned<String>>,
    kind: Option<Spanned<String>>,
}

/// Checks all documents of one file: the right ones, and what is wrong with the others.
pub fn parse(file: &str, text: &str) -> (Vec<Manifest>, Vec<Flaw>) {
    let (mut good, mut bad) = (Vec::new(), Vec::new());
    let text = with_line_feeds(text);
    for document in split(&text) {
        match check(file, &document) {
            Ok(manifest) => good.push(manifest),
            Err(flaw) => bad.push(flaw),
        }
    }
    (good, bad)
}

/// The text with one kind of line break. YAML 1.2 (5.4) has three and reads them alike, the lone carriage return among them;
/// lines are counted here as well, and must be the same lines.
fn with_line_feeds(text: &str) -> Cow<'_, str> {
    if text.contains('\r') { text.replace("\r\n", "\n").replace('\r', "\n").into() } else { text.into() }
}

fn check(file: &str, document: &Document<'_>) -> Result<Manifest, Flaw> {
    let place = format!("{file}:{}", document.lines_before + first_line(document.text));
    let flaw = |what: String| Flaw { place: place.clone(), what };
    if document.text.len() > DOCUMENT_BYTES_MAX {
        return Err(flaw(format!("the document has {} bytes, at most {DOCUMENT_BYTES_MAX}", document.text.len())));
    }
    let head: Head = read(file, document)?;
    let version = head.api_version.ok_or_else(|| flaw(format!("apiVersion is missing; it must be {API_VERSION}")))?;
    if version.value != API_VERSION {
        let what = format!("apiVersion {:?} is not known; it must be {API_VERSION}", version.value);
        return Err(Flaw { place: locate(file, document, Some(version.referenced)), what });
    }
    let kind = head.kind.ok_or_else(|| flaw(format!("kind is missing; it must be one of {}", KINDS.join(", "))))?;
    let unknown_kind = || {
        let close =
            closest(&kind.value, KINDS).or_else(|| KINDS.into_iter().find(|k| k.eq_ignore_ascii_case(&kind.value)));
        let next = match close {
            Some(close) => format!("did you mean {close}?"),
            None => format!("it must be one of {}", KINDS.join(", ")),
        };
        let what = format!("there is no kind {:?}; {next}", kind.value);
        Flaw { place: locate(file, document, Some(kind.referenced)), what }
    };
    let known = KINDS.contains(&kind.value.as_str()).then(|| Kind::from_title(&kind.value)).flatten();
    let kind = known.ok_or_else(unknown_kind)?;
    let (name, body) = if kind == Kind::Node {
        let node: NodeManifest = read(file, document)?;
        (node.metadata.name.clone(), serde_json::to_value(NodeManifest { status: None, ..node }))
    } else {
        let workload: WorkloadManifest = read(file, document)?;
        rules::check(kind, &workload.spec).map_err(flaw)?;
        (workload.metadata.name.clone(), serde_json::to_value(WorkloadManifest { status: None, ..workload }))
    };
    if name.is_empty() {
        return Err(flaw("metadata.name is empty".to_owned()));
    }
    let body = body.map_err(|e| flaw(format!("it has no JSON form: {e}")))?;
    Ok(Manifest { kind, name, body, place })
}

/// The first line with content, counted from 1.
fn first_line(text: &str) -> usize {
    let is_content =
        |line: &str| !line.trim().is_empty() && !line.trim_start().starts_with(['#', '%']) && !line.starts_with("---");
    text.lines().position(is_content).map_or(1, |i| i + 1)
}

fn read<T: DeserializeOwned>(file: &str, document: &Document<'_>) -> Result<T, Flaw> {
    let options = serde_saphyr::options! {
        budget: serde_saphyr::budget! {
            max_depth: DEPTH_MAX,
            max_nodes: NODES_MAX,
            max_aliases: 1_000,
            max_anchors: 1_000,
            max_documents: 1,
        },
        alias_limits: serde_saphyr::alias_limits! {
            max_total_replayed_events: NODES_MAX,
            max_alias_expansions_per_anchor: 1_000,
        },
        strict_booleans: true,
        with_snippet: false,
    };
    serde_saphyr::from_str_with_options(document.text, options).map_err(|error| {
        let error = error.without_snippet();
        let what = match error {
            serde_saphyr::Error::InvalidScalar { ty, location } => {
                format!("{} is no {}", word_at(document.text, *location), type_in_words(ty))
            }
            other => sentence(&other.to_string()),
        };
        Flaw { place: locate(file, document, error.location()), what }
    })
}

/// The word that begins at a place, quoted.
fn word_at(text: &str, location: Location) -> String {
    let (line, column) =
        (usize::try_from(location.line()).unwrap_or(0), usize::try_from(location.column()).unwrap_or(0));
    let line = text.lines().nth(line.saturating_sub(1)).unwrap_or_default();
    let word: String = line
        .chars()
        .skip(column.saturating_sub(1))
        .take_while(|c| !c.is_whitespace() && !",]}#".contains(*c))
        .collect();
    format!("{word:?}")
}

fn type_in_words(ty: &str) -> &str {
    match ty {
        "u16" => "whole number from 0 to 65535",
        "u64" | "u32" => "whole number from 0 up",
        "bool" | "boolean" => "true or false",
        other => other,
    }
}

fn locate(file: &str, document: &Document<'_>, location: Option<Location>) -> String {
    match location.filter(|l| l.line() > 0) {
        Some(location) => {
            let line = document.lines_before + usize::try_from(location.line()).unwrap_or(0);
            format!("{file}:{line}:{}", location.column())
        }
        None => format!("{file}:{}", document.lines_before + first_line(document.text)),
    }
}

/// The parser's message in plain words, without its own idea of where it is: that counts from the document's first line.
fn sentence(message: &str) -> String {
    let message = message.lines().next().unwrap_or_default();
    let message = message.strip_prefix("error: ").unwrap_or(message);
    let message = match message.strip_prefix("line ").and_then(|rest| rest.split_once(": ")) {
        Some((place, rest)) if place.chars().all(|c| c.is_ascii_digit() || " ,column".contains(c)) => rest,
        _ => message.split(" at line ").next().unwrap_or(message),
    };
    if let Some((name, rest)) = message.strip_prefix("unknown field `").and_then(|rest| rest.split_once('`')) {
        let known =
            rest.trim_start_matches(", expected one of ").split([',', ' ', '`']).filter(|word| !word.is_empty());
        return match closest(name, known) {
            Some(close) => format!("unknown field {name:?}, did you mean {close:?}?"),
            None => format!("unknown field {name:?}{}", rest.replace('`', "")),
        };
    }
    match message {
        "expected mapping start" => "fields (key: value) are expected here".to_owned(),
        "expected string scalar" => "a text is expected here".to_owned(),
        "recursion limit exceeded" => "it is nested too deeply".to_owned(),
        other => other.split(", set ").next().unwrap_or(other).to_owned(), // Advice for programmers.
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const APP: &str = "apiVersion: caravanserai/v1\nkind: App\nmetadata: { name: hello }\nspec: { image: busybox }\n";

    /// The one flaw of `text`.
    fn flaw(text: &str) -> String {
        let (good, bad) = parse("f.yaml", text);
        assert_eq!((good.len(), bad.len()), (0, 1), "{good:?} {bad:?}");
        format!("{}: {}", bad[0].place, bad[0].what)
    }

    fn flaw_has(text: &str, parts: &[&str]) {
        let flaw = flaw(text);
        for part in parts {
            assert!(flaw.contains(part), "{flaw:?} lacks {part:?}");
        }
    }

    #[test]
    fn several_documents_of_several_kinds() {
        let node = "apiVersion: caravanserai/v1\nkind: Node\nmetadata: {name: w1, labels: {site: a}}\n";
        let (good, bad) = parse("f.yaml", &format!("# two\n{APP}---\n{node}"));
        assert_eq!(bad, []);
        let titles: Vec<_> = good.iter().map(|m| (m.title(), m.place.clone())).collect();
        assert_eq!(titles, [("app/hello".into(), "f.yaml:2".into()), ("node/w1".into(), "f.yaml:7".into())]);
        assert_eq!(good[0].body["spec"]["image"], "busybox");
    }

    #[test]
    fn json_is_yaml() {
        let (good, bad) = parse("f.json", &serde_json::to_string_pretty(&parse("f", APP).0[0].body).expect("JSON"));
        assert_eq!((good.len(), bad), (1, vec![]));
    }

    #[test]
    fn a_status_on_the_way_in_is_dropped() {
        let (good, bad) = parse("f", &format!("{APP}status: {{ phase: Running }}\n"));
        assert_eq!(bad, []);
        assert_eq!(good[0].body.get("status"), None);
    }

    #[test]
    fn an_unknown_field_is_named_with_its_line() {
        flaw_has(
            &APP.replace("{ image: busybox }", "\n  image: busybox\n  imagee: x"),
            &["f.yaml:6:3", "imagee", "did you mean \"image\"?"],
        );
        let second = format!("{APP}---\n{}", APP.replace("metadata:", "metdata:"));
        let (good, bad) = parse("f.yaml", &second);
        assert_eq!((good.len(), bad.len()), (1, 1));
        assert!(bad[0].place.starts_with("f.yaml:8") && bad[0].what.contains("metdata"), "{bad:?}");
    }

    #[test]
    fn a_duplicate_key_is_named_with_its_line() {
        flaw_has(&format!("{APP}kind: App\n"), &["f.yaml:5", "kind"]);
        flaw_has(&APP.replace("{ image: busybox }", "\n  image: a\n  image: b"), &["f.yaml:6", "image"]);
        flaw_has(&APP.replace("{ name: hello }", "\n  name: hello\n  labels:\n    a: x\n    a: y"), &["f.yaml:7", "a"]);
    }

    #[test]
    fn wrong_heads_say_what_is_right() {
        flaw_has(&APP.replace("caravanserai/v1", "v1"), &["f.yaml:1:13", "caravanserai/v1"]);
        flaw_has(&APP.replace("kind: App", "kind: Ap"), &["f.yaml:2:7", "did you mean App?"]);
        flaw_has(&APP.replace("kind: App", "kind: app"), &["did you mean App?"]);
        flaw_has(&APP.replace("kind: App", "kind: Server"), &["one of Node, App, Project, Database"]);
        flaw_has("\n\nx: 1\n", &["f.yaml:3", "apiVersion is missing"]);
        flaw_has(&APP.replace("{ name: hello }", "{ name: '' }"), &["metadata.name"]);
        flaw_has(&APP.replace("{ name: hello }", "{}"), &["name"]);
        flaw_has("- 1\n- 2\n", &["f.yaml:1"]);
        flaw_has("{", &["f.yaml:1"]);
        flaw_has("just words", &["f.yaml:1"]);
    }

    #[test]
    fn every_line_break_of_yaml_counts() {
        for line_break in ["\n", "\r\n", "\r"] {
            let two = format!("{APP}---\n{}", APP.replace("image:", "imagee:")).replace('\n', line_break);
            let (good, bad) = parse("f.yaml", &two);
            assert_eq!((good.len(), bad.len()), (1, 1), "{two:?} {bad:?}");
            assert!(bad[0].place.starts_with("f.yaml:9:"), "{bad:?}");
        }
    }

    #[test]
    fn a_wrong_type_is_named_with_its_line() {
        let ports = "\n  image: x\n  ports:\n  - container: 70000\n";
        flaw_has(&APP.replace(" { image: busybox }", ports), &["f.yaml:7", "70000"]);
    }

    #[test]
    fn what_belongs_to_another_kind_is_told() {
        let database =
            "apiVersion: caravanserai/v1\nkind: Database\nmetadata: { name: d }\nspec: { engine: postgers }\n";
        flaw_has(database, &["f.yaml:1", "\"postgers\" is not known", "did you mean \"postgres\"?"]);
        assert_eq!(parse("f", &database.replace("postgers", "redis")).1, []);
        flaw_has(&APP.replace("image: busybox", "image: busybox, engine: redis"), &["f.yaml:1", "kind Database only"]);
        flaw_has(&database.replace("engine:", "engin:"), &["f.yaml:4", "did you mean \"engine\"?"]);
    }

    #[test]
    fn an_alias_bomb_costs_nothing() {
        let mut bomb =
            String::from("apiVersion: caravanserai/v1\nkind: App\nmetadata:\n  name: b\n  labels:\nx0: &x0 [lol]\n");
        for i in 1..30 {
            let previous = i - 1;
            bomb.push_str(&format!(
                "x{i}: &x{i} [*x{previous}, *x{previous}, *x{previous}, *x{previous}, *x{previous}]\n"
            ));
        }
        flaw(&bomb);
    }

    #[test]
    fn five_megabytes_in_one_document_are_refused_unread() {
        flaw_has(&format!("{APP}# {}", "x".repeat(5 << 20)), &["5242", "at most 1048576"]);
    }

    #[test]
    fn five_megabytes_of_documents_are_read() {
        let one = format!("---\n{}", APP.replace("busybox", &"x".repeat(1_000)));
        let (good, bad) = parse("f", &one.repeat((5 << 20) / one.len()));
        assert_eq!((good.len() > 4_000, bad), (true, vec![]));
    }

    #[test]
    fn deep_nesting_is_refused() {
        for deep in ["[".repeat(100_000), "{a: ".repeat(100_000), "- ".repeat(100_000)] {
            flaw(&deep);
        }
    }
}
