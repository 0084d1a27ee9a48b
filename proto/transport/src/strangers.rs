//! How many connections each address has open whose holder has shown no certificate.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// Of one listener. As large as its number of open connections, which is bounded.
#[derive(Default)]
pub struct Strangers(Arc<Mutex<BTreeMap<String, usize>>>);

/// Counts one connection until it is dropped.
pub struct Stranger {
    all: Arc<Mutex<BTreeMap<String, usize>>>,
    source: String,
}

impl Strangers {
    /// Counts one more, unless `source` has `max` already; 0 = any number.
    pub fn enter(&self, source: String, max: usize) -> Option<Stranger> {
        let mut all = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let open = all.get(&source).copied().unwrap_or_default();
        if max > 0 && open >= max {
            return None;
        }
        all.insert(source.clone(), open + 1);
        drop(all);
        Some(Stranger { all: self.0.clone(), source })
    }
}

impl Drop for Stranger {
    fn drop(&mut self) {
        let mut all = self.all.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(open) = all.get_mut(&self.source) {
            *open -= 1;
            if *open == 0 {
                all.remove(&self.source);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_has_so_many_and_no_more_and_leaves_nothing_behind() {
        let all = Strangers::default();
        let first = all.enter("a".into(), 2).expect("room");
        let _second = all.enter("a".into(), 2).expect("room");
        assert!(all.enter("a".into(), 2).is_none());
        assert!(all.enter("b".into(), 2).is_some(), "another address has its own");
        drop(first);
        let third = all.enter("a".into(), 2).expect("room again");
        assert!(all.enter("a".into(), 0).is_some(), "0 = any number");
        drop((_second, third));
        assert!(all.0.lock().expect("no panic").is_empty());
    }
}
