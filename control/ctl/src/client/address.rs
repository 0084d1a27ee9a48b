//! Addresses of servers as people write them.

use std::net::IpAddr;

/// One server.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Address {
    /// `host:port`, with brackets around an IPv6 address.
    pub authority: String,
    /// Plain HTTP; only ever true for loopback.
    pub plain: bool,
}

impl std::str::FromStr for Address {
    type Err = String;

    /// Takes `https://host:port`, `host:port`, and `http://` for this machine only: a token must not travel in the clear.
    fn from_str(text: &str) -> Result<Self, String> {
        let text = text.trim();
        let (scheme, rest) = text.split_once("://").unwrap_or(("https", text));
        let authority = rest.trim_end_matches('/');
        if !matches!(scheme, "https" | "http") {
            return Err(format!("{text:?} is not an address: the scheme must be https"));
        }
        let bad = |why: &str| Err(format!("{text:?} is not an address: {why}; write https://HOST:PORT"));
        let Some((host, port)) = authority.rsplit_once(':') else { return bad("the port is missing") };
        if host.is_empty() || authority.contains(['/', '?', '@', ' ']) {
            return bad("only a host and a port are allowed");
        }
        if host.contains(':') && !(host.starts_with('[') && host.ends_with(']')) {
            return bad("an IPv6 address needs brackets");
        }
        if !port.parse::<u16>().is_ok_and(|p| p > 0) {
            return bad("the port must be 1 to 65535");
        }
        let plain = scheme == "http";
        if plain && !is_loopback(host) {
            return Err(format!("{text:?} would send the token unencrypted; use https"));
        }
        Ok(Self { authority: authority.to_owned(), plain })
    }
}

fn is_loopback(host: &str) -> bool {
    host == "localhost" || host.trim_matches(['[', ']']).parse::<IpAddr>().is_ok_and(|ip| ip.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_as_people_write_them() {
        for (text, authority) in [
            ("https://s1.lan:7443", "s1.lan:7443"),
            ("10.0.0.1:7443", "10.0.0.1:7443"),
            ("https://[::1]:7443/", "[::1]:7443"),
            (" s1:1 ", "s1:1"),
        ] {
            assert_eq!(text.parse::<Address>(), Ok(Address { authority: authority.to_owned(), plain: false }));
        }
        assert!("http://127.0.0.1:80".parse::<Address>().expect("loopback").plain);
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_reason() {
        for (text, reason) in [
            ("s1", "port is missing"),
            ("https://s1:0", "1 to 65535"),
            ("https://s1:70000", "1 to 65535"),
            ("https://s1:1/api", "only a host"),
            ("ftp://s1:1", "https"),
            ("::1:80", "brackets"),
            ("http://10.0.0.1:80", "unencrypted"),
            ("https://u@s1:1", "only a host"),
        ] {
            let error = text.parse::<Address>().expect_err(text);
            assert!(error.contains(reason), "{text}: {error}");
        }
    }
}
