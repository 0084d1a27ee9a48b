//! Manifests: from files to checked objects. Nothing is sent before every document of every file is right.

mod parse;
mod rules;
mod split;

use std::io::Read;
use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::failure::{Failure, Outcome, exit};
use crate::kind::Kind;

pub use parse::parse;

/// Bytes of one file: some thousand documents.
const FILE_BYTES_MAX: u64 = 16 << 20;
/// Files of all folders together; a wrong folder (`/`) is noticed instead of read.
const FILES_MAX: usize = 1_000;

/// One document, checked.
#[derive(Debug, Clone, PartialEq)]
pub struct Manifest {
    /// What it is.
    pub kind: Kind,
    /// Its name.
    pub name: String,
    /// What is sent.
    pub body: Value,
    /// `file:line`, where it begins.
    pub place: String,
}

impl Manifest {
    /// `app/hello`.
    pub fn title(&self) -> String {
        format!("{}/{}", self.kind.singular(), self.name)
    }
}

/// What is wrong, and where.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flaw {
    /// `file:line` or `file:line:column`.
    pub place: String,
    /// One sentence.
    pub what: String,
}

/// Reads and checks all files; `-` is stdin, a folder means its `.yaml`, `.yml` and `.json` files in order of name.
/// Nodes come first, then databases, then what uses them; otherwise the order of the files stays.
///
/// # Errors
/// All flaws of all files at once, exit code 2; nothing is to be done with the right ones.
pub fn load(paths: &[PathBuf]) -> Outcome<Vec<Manifest>> {
    let mut manifests = Vec::new();
    let mut flaws = Vec::new();
    for path in expand(paths)? {
        let (name, text) = read(&path)?;
        let (good, bad) = parse(&name, &text);
        manifests.extend(good);
        flaws.extend(bad);
    }
    let mut seen: std::collections::BTreeMap<(Kind, String), String> = std::collections::BTreeMap::new();
    for manifest in &manifests {
        let key = (manifest.kind, manifest.name.clone());
        if let Some(first) = seen.insert(key, manifest.place.clone()) {
            let what = format!("{} is already described at {first}", manifest.title());
            flaws.push(Flaw { place: manifest.place.clone(), what });
        }
    }
    if !flaws.is_empty() {
        return Err(refused(&flaws));
    }
    if manifests.is_empty() {
        return Err(Failure::usage("the files describe nothing")
            .next("each document needs apiVersion, kind, metadata and spec"));
    }
    manifests.sort_by_key(|manifest| rank(manifest.kind));
    Ok(manifests)
}

/// An app may name a node and databases, and they must be there before it.
fn rank(kind: Kind) -> u8 {
    match kind {
        Kind::Node => 0,
        Kind::Database => 1,
        Kind::App | Kind::Project | Kind::Workload | Kind::Server | Kind::Token | Kind::ApiToken => 2,
    }
}

/// Flaws shown; the rest is counted.
const FLAWS_SHOWN: usize = 20;

fn refused(flaws: &[Flaw]) -> Failure {
    let mut lines: Vec<String> = flaws.iter().take(FLAWS_SHOWN).map(|f| format!("{}: {}", f.place, f.what)).collect();
    if flaws.len() > FLAWS_SHOWN {
        lines.push(format!("... and {} more", flaws.len() - FLAWS_SHOWN));
    }
    let count = match flaws.len() {
        1 => "1 mistake".to_owned(),
        n => format!("{n} mistakes"),
    };
    Failure::new(exit::USAGE, "manifest", format!("{count} in the manifests; nothing was sent")).why(lines.join("\n"))
}

fn expand(paths: &[PathBuf]) -> Outcome<Vec<PathBuf>> {
    let mut files = Vec::new();
    for path in paths {
        if path.is_dir() {
            let entries = std::fs::read_dir(path).map_err(|e| unreadable(path, &e.to_string()))?;
            let mut inside = Vec::new();
            for entry in entries.take(FILES_MAX * 10) {
                let entry = entry.map_err(|e| unreadable(path, &e.to_string()))?.path();
                let wanted = entry.extension().is_some_and(|x| x == "yaml" || x == "yml" || x == "json");
                if wanted && entry.is_file() {
                    inside.push(entry);
                }
            }
            if inside.is_empty() {
                return Err(unreadable(path, "the folder holds no .yaml, .yml or .json file"));
            }
            inside.sort();
            files.extend(inside);
        } else {
            files.push(path.clone());
        }
        if files.len() > FILES_MAX {
            return Err(Failure::usage(format!("more than {FILES_MAX} files")).next("name a smaller folder"));
        }
    }
    Ok(files)
}

fn read(path: &Path) -> Outcome<(String, String)> {
    let name = if path == Path::new("-") { "stdin".to_owned() } else { path.display().to_string() };
    let mut bytes = Vec::new();
    let result = if name == "stdin" {
        std::io::stdin().lock().take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes)
    } else {
        std::fs::File::open(path).and_then(|file| file.take(FILE_BYTES_MAX + 1).read_to_end(&mut bytes))
    };
    result.map_err(|e| unreadable(path, &e.to_string()))?;
    if bytes.len() as u64 > FILE_BYTES_MAX {
        return Err(unreadable(path, &format!("it is larger than {} MiB", FILE_BYTES_MAX >> 20)));
    }
    let text = String::from_utf8(bytes)
        .map_err(|e| unreadable(path, &format!("it is not UTF-8 text (byte {})", e.utf8_error().valid_up_to())))?;
    Ok((name, text))
}

fn unreadable(path: &Path, why: &str) -> Failure {
    Failure::usage(format!("can't read {}", path.display())).why(why)
}
