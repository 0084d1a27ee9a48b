//! Bytes: there and back, unknown things, damage, limits.

use crate::world::*;
use cara_core::codec::*;
use cara_core::command::*;
use cara_core::*;

#[test]
fn entries_and_outcomes_come_back_as_they_were() {
    let mut world = World::new();
    world.node("a");
    world.app("web", "nginx");
    let mut state = State::default();
    for (revision, entry) in &world.log {
        let bytes = encode_entry(entry).unwrap();
        assert_eq!(&decode_entry(&bytes).unwrap(), entry);
        let outcome = state.apply_entry(*revision, entry.clone()).reply;
        assert_eq!(decode_outcome(&encode_outcome(&outcome)).unwrap(), outcome);
    }
}

#[test]
fn refusals_come_back_with_their_fields() {
    let rejected = Rejected::NodeNotEligible { node: "a".into(), reason: "cordoned".into() };
    let back = decode_outcome(&encode_outcome(&Err(rejected.clone()))).unwrap().unwrap_err();
    assert_eq!(back, rejected);
    assert_eq!(back.to_string(), "node a can't take it: cordoned");
    assert_eq!((back.code(), back.kind()), ("node-not-eligible", RejectKind::Conflict));
    assert!(!back.hint().is_empty());
}

#[test]
fn codes_are_unique_and_kebab_case() {
    let mut codes: Vec<_> = Rejected::KINDS.iter().map(|(code, _)| *code).collect();
    codes.sort();
    codes.dedup();
    assert_eq!(codes.len(), Rejected::KINDS.len());
    assert!(codes.iter().all(|code| name::is_dns_label(code)), "{codes:?}");
}

#[test]
fn an_entry_that_is_too_large_is_refused_before_the_log() {
    let mut world = World::new();
    let mut create = world.app_command("web", "nginx");
    create.spec.services[0].args = vec!["x".repeat(limits::ENTRY_BYTES_MAX)];
    let error = encode_entry(&world.entry(create)).unwrap_err();
    assert!(matches!(error, CodecError::TooLarge { .. }), "{error}");
}

#[test]
fn unknown_fields_are_passed_over_and_unknown_commands_refused() {
    let world = World::new();
    let entry = world.entry(Cordon { node: "nd_a".into(), reason: String::new() });
    let mut bytes = encode_entry(&entry).unwrap();
    bytes.extend([0xfa, 0x7f, 0x02, b'h', b'i']); // Field 2047, two bytes.
    assert_eq!(decode_entry(&bytes).unwrap(), entry);
    // Field 5 (command) with the unknown variant 100 and an empty message.
    let unknown = [0x2a, 0x03, 0xa2, 0x06, 0x00];
    assert!(matches!(decode_entry(&unknown), Err(CodecError::UnknownCommand)));
    // An entry with a certificate purpose of a newer version: MintJoinToken{purpose: 9}.
    let purpose = [0x2a, 0x06, 0x22, 0x04, 0x1a, 0x02, 0x08, 0x09];
    assert!(matches!(decode_entry(&purpose), Err(CodecError::Bytes { .. })));
}

#[test]
fn a_state_with_a_foreign_or_damaged_object_is_not_loaded() {
    let error = State::load([(b"foo/1".as_slice(), b"".as_slice())]).unwrap_err();
    assert_eq!(error.to_string(), "load state: the key \"foo/1\" is damaged or of a newer version");
    let error = State::load([(b"node/nd_a".as_slice(), b"\xff\xff".as_slice())]).unwrap_err();
    assert!(matches!(error, CodecError::Object { .. }), "{error}");
}

#[test]
fn keys_come_back_as_they_were() {
    let mut world = World::new();
    world.node("a");
    world.app("web", "nginx");
    for (bytes, _) in world.state.dump() {
        assert_eq!(Key::parse(&bytes).map(|key| key.to_bytes()), Some(bytes));
    }
}
