//! Where a machine is reached, from what it says of itself.

/// `HOST:PORT` of a port on the machine at `address`, which is a host or an IP address, with or without a port of its own;
/// none when the address is empty.
pub fn reached_at(address: &str, port: u32) -> Option<String> {
    let host = match address.rsplit_once(':') {
        // An IPv6 address has colons of its own, and none behind it without brackets.
        Some((host, port)) if port.parse::<u16>().is_ok() && (!host.contains(':') || host.starts_with('[')) => host,
        Some(_) | None => address,
    };
    if host.is_empty() {
        return None;
    }
    let bare = host.contains(':') && !host.starts_with('[');
    Some(if bare { format!("[{host}]:{port}") } else { format!("{host}:{port}") })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_host_is_found_with_and_without_a_port_of_its_own() {
        let cases = [
            ("10.0.0.1", "10.0.0.1:80"),
            ("10.0.0.1:7444", "10.0.0.1:80"),
            ("n1.example", "n1.example:80"),
            ("fd00::1", "[fd00::1]:80"),
            ("[fd00::1]", "[fd00::1]:80"),
            ("[fd00::1]:7444", "[fd00::1]:80"),
        ];
        for (address, expected) in cases {
            assert_eq!(reached_at(address, 80).as_deref(), Some(expected), "{address}");
        }
        assert_eq!(reached_at("", 80), None);
    }
}
