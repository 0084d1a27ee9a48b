//! Amounts as people write them in manifests: `250m` and `2` cores, `512Mi` and `1Gi` bytes.

/// Thousandths of a core.
pub fn cpu(millis: u128) -> String {
    if millis.is_multiple_of(1_000) { (millis / 1_000).to_string() } else { format!("{millis}m") }
}

/// Bytes, in the largest binary unit that divides them.
pub fn bytes(bytes: u128) -> String {
    let units = [("Ti", 1_u128 << 40), ("Gi", 1 << 30), ("Mi", 1 << 20), ("Ki", 1 << 10)];
    let fits = units.iter().find(|(_, size)| bytes >= *size && bytes.is_multiple_of(*size));
    fits.map_or(bytes.to_string(), |(unit, size)| format!("{}{unit}", bytes / size))
}

#[cfg(test)]
mod tests {
    #[test]
    fn amounts_are_written_in_the_largest_unit_that_divides_them() {
        assert_eq!([0, 250, 1_000, 1_500].map(super::cpu), ["0", "250m", "1", "1500m"]);
        let written = [0, 1_023, 1_024, 512 << 20, 1 << 30, (1 << 30) + 1].map(super::bytes);
        assert_eq!(written, ["0", "1023", "1Ki", "512Mi", "1Gi", "1073741825"]);
    }
}
