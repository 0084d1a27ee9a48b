//! Where a node is in the network, from what it advertises and from what the leader has seen of the way to it.

use cara_core::model::Node;
use cara_proto::rest::{Network, Throughput};

use super::node::Around;
use super::{reached_at, rfc3339};
use crate::sessions::{Link, Rate};

/// None when nothing is known.
pub(super) fn network(node: &Node, around: &Around<'_>) -> Option<Network> {
    if node.address.is_empty() && around.link.is_none() {
        return None;
    }
    let host = host(&node.address);
    let is_ip = host.parse::<std::net::IpAddr>().is_ok();
    let known = around.link.as_ref();
    Some(Network {
        ip: if is_ip { host.clone() } else { String::new() },
        dns_name: if is_ip { String::new() } else { host },
        mode: known.map(|link| mode(link).to_owned()).unwrap_or_default(),
        agent_port: known.and_then(|link| link.volume_address.rsplit_once(':')?.1.parse().ok()),
        throughput: known.and_then(throughput),
    })
}

/// The host of an address with or without a port, without brackets.
fn host(address: &str) -> String {
    let with_port = reached_at(address, 0).unwrap_or_default();
    with_port.strip_suffix(":0").unwrap_or_default().trim_matches(['[', ']']).to_owned()
}

fn mode(link: &Link) -> &'static str {
    if link.volume_address.is_empty() || link.relayed { "Relayed" } else { "Direct" }
}

fn throughput(link: &Link) -> Option<Throughput> {
    let newest = [link.download, link.upload].into_iter().flatten().map(|rate| rate.at_ms).max()?;
    let words = |rate: Option<Rate>| rate.map(|rate| megabits(rate.bytes_per_second)).unwrap_or_default();
    Some(Throughput { download: words(link.download), upload: words(link.upload), last_test_time: rfc3339(newest) })
}

/// `120Mbps`, `0.4Mbps`.
fn megabits(bytes_per_second: u64) -> String {
    let tenths = bytes_per_second.saturating_mul(8) / 100_000;
    if tenths >= 100 { format!("{}Mbps", tenths / 10) } else { format!("{}.{}Mbps", tenths / 10, tenths % 10) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of(address: &str, link: Option<Link>) -> Option<Network> {
        let node = Node { address: address.into(), ..Node::default() };
        network(&node, &Around { link, ..Around::default() })
    }

    #[test]
    fn names_and_addresses_are_told_apart() {
        let cases = [("10.0.0.4", "10.0.0.4", ""), ("[fd00::1]:7444", "fd00::1", ""), ("n1.lan", "", "n1.lan")];
        for (address, ip, dns_name) in cases {
            let seen = of(address, None).unwrap();
            assert_eq!((seen.ip.as_str(), seen.dns_name.as_str(), seen.mode.as_str()), (ip, dns_name, ""), "{address}");
        }
        assert_eq!(of("", None), None);
    }

    #[test]
    fn the_way_is_direct_until_somebody_could_not_dial_it() {
        let rate = |bytes_per_second| Some(Rate { bytes_per_second, at_ms: 1_700_000_000_000 });
        let link = Link { volume_address: "n1.lan:7444".into(), upload: rate(15_000_000), ..Link::default() };
        let seen = of("n1.lan", Some(link.clone())).unwrap();
        assert_eq!((seen.mode.as_str(), seen.agent_port), ("Direct", Some(7444)));
        let throughput = seen.throughput.unwrap();
        assert_eq!((throughput.upload.as_str(), throughput.download.as_str()), ("120Mbps", ""));
        assert_eq!(throughput.last_test_time, "2023-11-14T22:13:20Z");
        assert_eq!(of("n1.lan", Some(Link { relayed: true, ..link })).unwrap().mode, "Relayed");
        assert_eq!(of("n1.lan", Some(Link::default())).unwrap().mode, "Relayed", "it answers nobody");
        assert_eq!(megabits(50_000), "0.4Mbps");
    }
}
