//! The log: whatever an entry asks, applying it is refused or keeps every invariant.

use std::sync::LazyLock;

use cara_core::{Command, Entry, State, codec, invariant};

/// A history in which every command occurs; the same file that proves that old logs stay readable.
const HISTORY: &[u8] = include_bytes!("../../../control/core/tests/golden/log-v2.bin");

/// The entries of a history, each after its length (four bytes, little endian).
fn entries_of(mut bytes: &'static [u8]) -> Vec<&'static [u8]> {
    let mut entries = Vec::new();
    while let Some((length, rest)) = bytes.split_first_chunk::<4>() {
        let (entry, rest) = rest.split_at(u32::from_le_bytes(*length) as usize);
        entries.push(entry);
        bytes = rest;
    }
    entries
}

/// The state after each prefix of the history.
static STATES: LazyLock<Vec<State>> = LazyLock::new(|| {
    let mut states = vec![State::default()];
    let mut state = State::default();
    for (index, bytes) in (1..).zip(entries_of(HISTORY)) {
        state.apply_entry(index, codec::decode_entry(bytes).expect("the history is readable"));
        states.push(state.clone());
    }
    states
});

/// A state with nodes, workloads, moves and drains in it, for whom commands come to.
pub(crate) fn some_state() -> &'static State {
    STATES.last().expect("there is the empty one at least")
}

/// An entry is read or refused; what is read is written as the same entry, and a cluster lives on after it.
pub fn entry(bytes: &[u8]) {
    let Ok(entry) = codec::decode_entry(bytes) else { return };
    let written = codec::encode_entry(&entry).expect("it isn't larger than it was");
    assert_eq!(codec::decode_entry(&written).expect("written by us"), entry);
    apply(some_state(), entry);
}

/// An entry of the history with some bytes changed, applied where it once stood: that comes further than random bytes.
/// The input: which entry, then pairs of place and new byte.
pub fn bent_entry(bytes: &[u8]) {
    let entries = entries_of(HISTORY);
    let Some((&which, edits)) = bytes.split_first() else { return };
    let at = usize::from(which) % entries.len();
    let mut bent = entries[at].to_vec();
    for edit in edits.chunks_exact(2) {
        let place = usize::from(edit[0]) * bent.len() / 256;
        if let Some(byte) = bent.get_mut(place) {
            *byte = edit[1];
        }
    }
    if let Ok(entry) = codec::decode_entry(&bent) {
        apply(&STATES[at], entry);
    }
}

/// Applies it to a copy, under the incarnation that is in force.
pub(crate) fn apply(state: &State, entry: Entry) {
    let incarnation = state.cluster().map_or(0, |cluster| cluster.incarnation);
    let mut after = state.clone();
    let applied = after.apply_entry(after.revision().0 + 1, Entry { incarnation, ..entry });
    let broken = invariant::check(&after);
    assert!(broken.is_empty(), "after {:?}: {broken:?}", applied.reply);
    let bytes = codec::encode_outcome(&applied.reply);
    assert_eq!(codec::decode_outcome(&bytes).expect("written by us"), applied.reply);
}

/// Applies a command that somebody asks for.
pub(crate) fn ask(state: &State, command: Command) {
    let entry = Entry { at_ms: 1, actor: "token:fuzz".into(), command, ..Entry::default() };
    if codec::encode_entry(&entry).is_ok() {
        apply(state, entry);
    }
}

/// An outcome is read or refused, and what is read is written as the same.
pub fn outcome(bytes: &[u8]) {
    if let Ok(outcome) = codec::decode_outcome(bytes) {
        let written = codec::encode_outcome(&outcome);
        assert_eq!(codec::decode_outcome(&written).expect("written by us"), outcome);
    }
}

/// Stored pairs are loaded or refused; what is loaded is stored as the same state. The input: pairs, each half after its
/// length in one byte.
pub fn stored(bytes: &[u8]) {
    let mut rest = bytes;
    let mut half = || {
        let (&length, tail) = rest.split_first()?;
        let (half, tail) = tail.split_at_checked(usize::from(length))?;
        rest = tail;
        Some(half.to_vec())
    };
    let mut pairs = Vec::new();
    while let (Some(key), Some(value)) = (half(), half()) {
        pairs.push((key, value));
    }
    if let Ok(state) = State::load(pairs) {
        let again = State::load(state.dump()).expect("stored by us");
        assert_eq!(again, state);
        let _ = invariant::check(&state); // It may be broken; looking at it may not panic.
    }
}
