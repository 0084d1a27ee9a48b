//! The sealing keys in `server.json`: one, and while it is being replaced the next one, told from each other by their ids.
//!
//! An id is a hash of the key. It goes into the log, where a key must never be.

use cara_transport::JoinToken;

use crate::identity::{ServerIdentity, from_hex};
use crate::pki::SEALING_KEY_LEN;

/// Keys in one file. Two are needed; the others were made by this server and never named, because it or its leadership ended
/// in between.
pub const SEALING_KEYS_MAX: usize = 16;

/// The id of a key (hex).
pub fn id_of(key: &str) -> String {
    JoinToken::hash(&format!("id of the sealing key {key}"))
}

/// A key's bytes; none when it isn't one.
pub fn bytes_of(key: &str) -> Option<[u8; SEALING_KEY_LEN]> {
    from_hex(key)?.try_into().ok()
}

impl ServerIdentity {
    /// All sealing keys (hex), the oldest first.
    pub fn sealing_keys(&self) -> impl Iterator<Item = &String> {
        std::iter::once(&self.sealing_key).chain(&self.further_sealing_keys)
    }

    /// The key (hex) of this id. A cluster that never replaced its key doesn't know its id: there it is the first one.
    pub fn sealing_key_of(&self, id: &str) -> Option<&str> {
        if id.is_empty() {
            return Some(&self.sealing_key);
        }
        self.sealing_keys().find(|key| id_of(key) == id).map(String::as_str)
    }

    /// Adds a key. Where there are too many, the oldest that may go is forgotten.
    pub fn add_sealing_key(&mut self, key: String, is_needed: impl Fn(&str) -> bool) {
        if self.sealing_keys().any(|known| *known == key) {
            return;
        }
        if self.sealing_keys().count() >= SEALING_KEYS_MAX
            && let Some(at) = self.further_sealing_keys.iter().position(|key| !is_needed(&id_of(key)))
        {
            self.further_sealing_keys.remove(at);
        }
        self.further_sealing_keys.push(key);
    }

    /// Forgets the keys whose ids are none of these; never the last one.
    pub fn keep_sealing_keys(&mut self, is_kept: impl Fn(&str) -> bool) {
        let mut kept: Vec<_> = self.sealing_keys().filter(|key| is_kept(&id_of(key))).cloned().collect();
        if kept.is_empty() {
            return;
        }
        self.sealing_key = kept.remove(0);
        self.further_sealing_keys = kept;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn identity(keys: &[&str]) -> ServerIdentity {
        let text = r#"{"server_id":1,"name":"s1","cluster_id":"c","listen":"","advertise":"","certificate_pem":"","key_pem":"",
            "ca_pem":"","sealing_key":"a","fresh":false}"#;
        // A file of a release that knew one key.
        let old: ServerIdentity = serde_json::from_str(text).unwrap();
        assert_eq!((old.sealing_keys().count(), old.sealing_key_of("")), (1, Some("a")));
        let further_sealing_keys = keys[1..].iter().map(|key| (*key).to_owned()).collect();
        ServerIdentity { sealing_key: keys[0].to_owned(), further_sealing_keys, ..old }
    }

    #[test]
    fn a_key_is_found_by_its_id_and_the_last_one_is_never_forgotten() {
        let mut two = identity(&["a", "b"]);
        assert_eq!((two.sealing_key_of(&id_of("b")), two.sealing_key_of(&id_of("c"))), (Some("b"), None));
        two.keep_sealing_keys(|id| id == id_of("b"));
        assert_eq!((two.sealing_key.as_str(), two.further_sealing_keys.len()), ("b", 0));
        two.keep_sealing_keys(|_| false);
        assert_eq!(two.sealing_key, "b");
    }

    #[test]
    fn a_file_never_has_too_many_keys_and_those_that_are_needed_stay() {
        let mut many = identity(&["first", "next"]);
        for number in 0..40 {
            many.add_sealing_key(format!("k{number}"), |id| id == id_of("next"));
            many.add_sealing_key(format!("k{number}"), |id| id == id_of("next"));
        }
        let keys: Vec<_> = many.sealing_keys().map(String::as_str).collect();
        assert_eq!((keys.len(), &keys[..2], keys[15]), (SEALING_KEYS_MAX, &["first", "next"][..], "k39"));
    }
}
