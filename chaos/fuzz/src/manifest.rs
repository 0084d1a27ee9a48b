//! Files that people write: every document is taken or has a flaw with a line that exists.

use caractrl::manifest::{Flaw, parse};

/// Documents of a file. Nothing is passed over in silence.
pub fn manifest(bytes: &[u8]) {
    let Ok(text) = std::str::from_utf8(bytes) else { return };
    let lines = text.replace("\r\n", "\n").replace('\r', "\n").lines().count(); // As YAML counts them.
    let (good, bad) = parse("fuzz.yaml", text);
    for Flaw { place, .. } in &bad {
        let line = place.split(':').nth(1).and_then(|line| line.parse::<usize>().ok());
        assert!(line.is_some_and(|line| line <= lines + 1), "{place} is no place in the file");
    }
    for manifest in good {
        assert!(!manifest.name.is_empty() && manifest.body.is_object(), "{}", manifest.title());
    }
}
