//! Rules for what people name: nodes, workloads, services, labels. Pure checks; each error says the rule.

use crate::limits;
use crate::rejected::Problem;
use std::collections::BTreeMap;

/// A node's name is one DNS label, because DNS names, certificates and paths are made from it: 1 to 63 of `a-z`, `0-9`
/// and `-`, alphanumeric at both ends.
pub fn check_node(field: &str, name: &str) -> Result<(), Problem> {
    if is_dns_label(name) {
        return Ok(());
    }
    Err(Problem::new(
        field,
        format!("{name:?} must be 1 to 63 of a-z, 0-9 and '-', with a letter or digit at both ends"),
    ))
}

/// The name of a node that is new. Beside the rule for all it begins with a letter, as host names in certificates and in
/// the DNS do; nodes from before that rule keep their names. The error has a name that would do, made from the given one.
pub fn check_new_node(field: &str, name: &str) -> Result<(), Problem> {
    if is_dns_label(name) && name.starts_with(|c: char| c.is_ascii_lowercase()) {
        return Ok(());
    }
    let rule = "must be 1 to 63 of a-z, 0-9 and '-', with a letter first and a letter or digit last";
    let instead = suggest_node(name).map(|fits| format!("; {fits} would do")).unwrap_or_default();
    Err(Problem::new(field, format!("{name:?} {rule}{instead}")))
}

/// A node's name made from something that is none, such as a host name; none when nothing of it can be used.
pub fn suggest_node(text: &str) -> Option<String> {
    // Of a full host name the first label is what people call the machine.
    let first = text.split('.').find(|label| !label.is_empty())?;
    let mut name = String::new();
    for c in first.chars() {
        match c.to_ascii_lowercase() {
            c @ ('a'..='z' | '0'..='9') => name.push(c),
            _ if !name.is_empty() && !name.ends_with('-') => name.push('-'),
            _ => {}
        }
    }
    if name.starts_with(|c: char| c.is_ascii_digit()) {
        name.insert(0, 'n');
    }
    name.truncate(NODE_NAME_BYTES_MAX);
    let name = name.trim_end_matches('-').to_owned();
    (!name.is_empty()).then_some(name)
}

/// A service's name follows the rule of nodes: it is a host name in the project's network.
pub fn check_service(field: &str, name: &str) -> Result<(), Problem> {
    check_node(field, name)
}

/// A workload's name: 1 to 253 of `a-z`, `0-9`, `.` and `-`, alphanumeric at both ends.
pub fn check_workload(field: &str, name: &str) -> Result<(), Problem> {
    if is_dotted(name, 253, true) {
        return Ok(());
    }
    let rule = "must be 1 to 253 of a-z, 0-9, '.' and '-', with a letter or digit at both ends";
    Err(Problem::new(field, format!("{name:?} {rule}")))
}

/// Labels and selectors: at most 32; a key is 1 to 63 of `a-z 0-9 . _ / -`, a value 1 to 63 of `A-Z a-z 0-9 . _ -`.
pub fn check_labels(field: &str, labels: &BTreeMap<String, String>) -> Result<(), Problem> {
    check_count(field, labels.len())?;
    for (key, value) in labels {
        check_key(field, key)?;
        let allowed = |b: u8| b.is_ascii_alphanumeric() || b"._-".contains(&b);
        if !(1..=63).contains(&value.len()) || !value.bytes().all(allowed) {
            let rule = "must be 1 to 63 of A-Z, a-z, 0-9, '.', '_' and '-'";
            return Err(Problem::new(format!("{field}[{key}]"), format!("the value {value:?} {rule}")));
        }
    }
    Ok(())
}

/// Annotations: the keys of labels, values of at most 1024 bytes.
pub fn check_annotations(field: &str, annotations: &BTreeMap<String, String>) -> Result<(), Problem> {
    check_count(field, annotations.len())?;
    for (key, value) in annotations {
        check_key(field, key)?;
        if value.len() > limits::ANNOTATION_BYTES_MAX {
            let rule = format!("the value has {} bytes, at most {}", value.len(), limits::ANNOTATION_BYTES_MAX);
            return Err(Problem::new(format!("{field}[{key}]"), rule));
        }
    }
    Ok(())
}

/// One DNS label: 1 to 63 of `a-z`, `0-9` and `-`, alphanumeric at both ends.
pub fn is_dns_label(name: &str) -> bool {
    is_dotted(name, NODE_NAME_BYTES_MAX, false)
}

/// Bytes of a DNS label.
const NODE_NAME_BYTES_MAX: usize = 63;

fn check_count(field: &str, count: usize) -> Result<(), Problem> {
    if count > limits::LABELS_MAX {
        return Err(Problem::new(field, format!("has {count} entries, at most {}", limits::LABELS_MAX)));
    }
    Ok(())
}

fn check_key(field: &str, key: &str) -> Result<(), Problem> {
    let allowed = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b"._/-".contains(&b);
    if !(1..=63).contains(&key.len()) || !key.bytes().all(allowed) {
        let rule = "must be 1 to 63 of a-z, 0-9, '.', '_', '/' and '-'";
        return Err(Problem::new(field, format!("the key {key:?} {rule}")));
    }
    Ok(())
}

fn is_dotted(name: &str, bytes_max: usize, dots: bool) -> bool {
    let alphanumeric = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit();
    let bytes = name.as_bytes();
    let (Some(first), Some(last)) = (bytes.first(), bytes.last()) else { return false };
    bytes.len() <= bytes_max
        && alphanumeric(*first)
        && alphanumeric(*last)
        && bytes.iter().all(|b| alphanumeric(*b) || *b == b'-' || (dots && *b == b'.'))
}
