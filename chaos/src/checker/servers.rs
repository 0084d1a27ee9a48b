//! Every server's state keeps the invariants of the domain, and servers that have applied as much have the same state.

use std::collections::BTreeMap;

use cara_core::{State, invariant};

/// Follows the states of all servers.
#[derive(Default)]
pub struct Servers {
    /// Hash of the state at an applied revision, and who had it first.
    at: BTreeMap<u64, (u64, String)>,
    last: BTreeMap<String, State>,
}

impl Servers {
    /// Looks at a server's state as it is on disk now.
    pub fn look(&mut self, server: &str, state: State) -> Vec<String> {
        let mut wrong: Vec<String> =
            invariant::check(&state).iter().map(|violation| format!("{server}: {violation}")).collect();
        if let Some(before) = self.last.get(server).filter(|before| before.revision() <= state.revision()) {
            wrong
                .extend(invariant::check_step(before, &state).iter().map(|violation| format!("{server}: {violation}")));
        }
        let hash = state.state_hash();
        let (known, first) = self.at.entry(state.revision().0).or_insert_with(|| (hash, server.to_owned()));
        if *known != hash {
            wrong.push(format!("{server} and {first} differ at revision {}", state.revision().0));
        }
        self.last.insert(server.to_owned(), state);
        wrong
    }

    /// The last state seen of a server.
    pub fn of(&self, server: &str) -> Option<&State> {
        self.last.get(server)
    }

    /// The highest revision seen.
    pub fn highest(&self) -> u64 {
        self.at.last_key_value().map_or(0, |(revision, _)| *revision)
    }
}
