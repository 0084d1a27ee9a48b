//! PAX records: "length key=value\n". The value is binary and may contain anything, newlines as well.

use std::collections::BTreeMap;

use crate::VolumeError;
use crate::archive::damaged;

/// Records of the next entry by key.
pub(super) type Records = BTreeMap<Vec<u8>, Vec<u8>>;

pub(super) fn decode(mut bytes: &[u8], into: &mut Records) -> Result<(), VolumeError> {
    while !bytes.is_empty() {
        let (record, rest) = next(bytes).ok_or_else(|| damaged("a PAX record is cut off"))?;
        let equals = record.iter().position(|byte| *byte == b'=').ok_or_else(|| damaged("a PAX record has no '='"))?;
        into.insert(record[..equals].to_vec(), record[equals + 1..].to_vec());
        bytes = rest;
    }
    Ok(())
}

/// The first record without its length and its newline, and what follows.
fn next(bytes: &[u8]) -> Option<(&[u8], &[u8])> {
    let space = bytes.iter().take(20).position(|byte| *byte == b' ')?;
    let length: usize = std::str::from_utf8(&bytes[..space]).ok()?.parse().ok()?;
    let record = bytes.get(space + 1..length)?.strip_suffix(b"\n")?;
    Some((record, &bytes[length..]))
}

/// Seconds with a fraction, as nanoseconds.
pub(super) fn time_from_text(text: &[u8]) -> Option<i64> {
    let text = std::str::from_utf8(text).ok()?;
    let (is_negative, text) = text.strip_prefix('-').map_or((false, text), |rest| (true, rest));
    let (seconds, fraction) = text.split_once('.').unwrap_or((text, ""));
    let digits: String = fraction.chars().chain("000000000".chars()).take(9).collect();
    let ns = seconds.parse::<i64>().ok()?.checked_mul(1_000_000_000)?.checked_add(digits.parse().ok()?)?;
    Some(if is_negative { -ns } else { ns })
}

pub(super) fn time_to_text(ns: i64) -> String {
    let sign = if ns < 0 { "-" } else { "" };
    let ns = ns.unsigned_abs();
    format!("{sign}{}.{:09}", ns / 1_000_000_000, ns % 1_000_000_000)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_value_may_contain_newlines() {
        let mut records = Records::new();
        decode(b"20 SCHILY.xattr.a=\n\n12 path=b/c\n", &mut records).unwrap();
        assert_eq!(records[&b"SCHILY.xattr.a"[..]], b"\n");
        assert_eq!(records[&b"path"[..]], b"b/c");
    }

    #[test]
    fn damaged_records_are_refused() {
        for bytes in
            [&b"99 path=a\n"[..], b"path=a\n", b"0 a=b\n", b"10 path=aa", b"8 patha\n", b"99999999999999999999 a=b\n"]
        {
            assert!(decode(bytes, &mut Records::new()).is_err(), "{}", bytes.escape_ascii());
        }
    }

    #[test]
    fn times_survive() {
        for ns in [0, 1, -1, 1_700_000_000_123_456_789, -1_500_000_000, i64::MAX] {
            assert_eq!(time_from_text(time_to_text(ns).as_bytes()), Some(ns));
        }
        assert_eq!(time_from_text(b"12"), Some(12_000_000_000));
        assert_eq!(time_from_text(b"12.5"), Some(12_500_000_000));
        assert_eq!(time_from_text(b"x"), None);
    }
}
