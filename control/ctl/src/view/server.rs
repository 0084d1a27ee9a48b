//! Servers, and what the cluster can still lose.

use cara_proto::rest::ClusterView;
use serde_json::Value;

use super::text;
use crate::out::Table;

/// `items` are servers to which the cluster's `term` was added, see [`rows`].
pub(super) fn table(items: &[Value], wide: bool) -> Table {
    let mut header = vec!["ID", "NAME", "ROLE", "VOTER", "TERM", "MATCHED", "LAG"];
    if wide {
        header.extend(["ADDRESS", "VERSION", "LEVEL", "CERTIFICATE"]);
    }
    let mut table = Table::new(&header);
    for server in items {
        let leads = text(server, "/role") == "leader";
        let mut row: Vec<String> =
            ["/id", "/name", "/role", "/voter", "/term", "/matched"].iter().map(|p| text(server, p)).collect();
        row.push(if leads { String::new() } else { text(server, "/lag") });
        if wide {
            row.extend([
                text(server, "/address"),
                text(server, "/version"),
                text(server, "/featureLevel"),
                certificate(server),
            ]);
        }
        table.row(row);
    }
    table
}

/// One line: is there a quorum, what can be lost, what to do next.
pub(crate) fn summary(cluster: &ClusterView) -> String {
    let (alive, voters) = (cluster.voters_alive, cluster.voters);
    let quorum = if cluster.leader.is_empty() {
        format!("no leader ({alive} of {voters} voters alive, {} needed)", voters / 2 + 1)
    } else {
        format!("quorum ok ({alive} of {voters} alive)")
    };
    let down: Vec<&str> = cluster.servers.iter().filter(|s| s.role == "unreachable").map(|s| s.name.as_str()).collect();
    let next = if !down.is_empty() {
        format!(" next: start {}", down.join(", "))
    } else if voters == 1 {
        " next: add two servers with `caractrl servers join-token`".to_owned()
    } else if voters.is_multiple_of(2) {
        " next: add a server; an even number survives no more than one less".to_owned()
    } else {
        String::new()
    };
    let lose = if cluster.leader.is_empty() { String::new() } else { format!(" Can lose {} more.", cluster.can_lose) };
    format!("{quorum}.{lose}{next}{}{}", held_back(cluster), expiring(cluster))
}

/// `ok (89d)`.
fn certificate(server: &Value) -> String {
    let state = text(server, "/certificate/state");
    if state.is_empty() { state } else { format!("{state} ({}d)", text(server, "/certificate/daysRemaining")) }
}

/// Whose certificate should have been renewed by itself, and was not.
fn expiring(cluster: &ClusterView) -> String {
    let is_late = |state: &str| matches!(state, "expiring" | "critical" | "expired");
    let late = cluster.servers.iter().filter(|server| is_late(&server.certificate.state));
    let late: Vec<String> =
        late.map(|server| format!("{} ({} days)", server.name, server.certificate.days_remaining)).collect();
    if late.is_empty() {
        return String::new();
    }
    format!(" Certificates that are not renewed: {}; see the logs there, and start what is down.", late.join(", "))
}

/// Who keeps the cluster from what other servers support already.
fn held_back(cluster: &ClusterView) -> String {
    let highest = cluster.servers.iter().map(|s| s.feature_level).max().unwrap_or_default();
    if highest <= cluster.feature_level {
        return String::new();
    }
    let behind = cluster.servers.iter().filter(|s| s.feature_level < highest);
    let behind: Vec<String> = behind.map(|s| format!("{} (at {})", s.name, s.feature_level)).collect();
    let level = cluster.feature_level;
    if behind.is_empty() {
        return format!(" Feature level {level}, about to rise to {highest}.");
    }
    format!(" Feature level {level} of {highest}: upgrade {}.", behind.join(", "))
}

/// The servers as values with the cluster's term, for [`table`].
pub(crate) fn rows(cluster: &ClusterView) -> Vec<Value> {
    let with_term = |server| {
        let mut value = serde_json::to_value(server).unwrap_or_default();
        if let Some(map) = value.as_object_mut() {
            map.insert("term".to_owned(), cluster.term.into());
        }
        value
    };
    cluster.servers.iter().map(with_term).collect()
}

#[cfg(test)]
mod tests {
    use cara_proto::rest::ServerView;

    use super::*;

    fn cluster(roles: &[&str]) -> ClusterView {
        let server = |(i, role): (usize, &&str)| ServerView {
            id: i as u64 + 1,
            name: format!("s{}", i + 1),
            role: (*role).to_owned(),
            voter: true,
            matched: 40 - i as u64,
            lag: i as u64,
            ..ServerView::default()
        };
        let alive = roles.iter().filter(|r| **r != "unreachable").count() as u64;
        let voters = roles.len() as u64;
        let leader = if roles.contains(&"leader") { "s1" } else { "" };
        ClusterView {
            leader: leader.into(),
            term: 3,
            voters_alive: alive,
            voters,
            can_lose: alive.saturating_sub(voters / 2 + 1),
            servers: roles.iter().enumerate().map(server).collect(),
            ..ClusterView::default()
        }
    }

    #[test]
    fn three_servers_can_lose_one() {
        let cluster = cluster(&["leader", "follower", "follower"]);
        assert_eq!(
            table(&rows(&cluster), false).render(true, false, true),
            "ID  NAME  ROLE      VOTER  TERM  MATCHED  LAG\n\
             1   s1    leader    yes    3     40       -\n\
             2   s2    follower  yes    3     39       1\n\
             3   s3    follower  yes    3     38       2\n"
        );
        assert_eq!(summary(&cluster), "quorum ok (3 of 3 alive). Can lose 1 more.");
    }

    #[test]
    fn who_holds_the_feature_level_back_is_named() {
        let mut cluster = cluster(&["leader", "follower", "follower"]);
        cluster.feature_level = 1;
        cluster.servers.iter_mut().for_each(|server| server.feature_level = 2);
        assert!(summary(&cluster).ends_with("Feature level 1, about to rise to 2."));
        cluster.servers[2].feature_level = 1;
        assert!(summary(&cluster).ends_with("Can lose 1 more. Feature level 1 of 2: upgrade s3 (at 1)."));
        cluster.servers.remove(2);
        cluster.feature_level = 2;
        assert!(!summary(&cluster).contains("Feature level"));
    }

    #[test]
    fn a_certificate_that_is_not_renewed_is_told() {
        let mut cluster = cluster(&["leader", "follower", "follower"]);
        for (server, (state, days)) in cluster.servers.iter_mut().zip([("ok", 80), ("expiring", 20), ("critical", 5)]) {
            (server.certificate.state, server.certificate.days_remaining) = (state.into(), days);
        }
        let said = summary(&cluster);
        assert!(said.contains("Certificates that are not renewed: s2 (20 days), s3 (5 days); see"), "{said}");
        assert!(table(&rows(&cluster), true).render(false, false, false).contains("critical (5d)"));
    }

    #[test]
    fn the_next_step_fits_the_trouble() {
        let ends = |roles: &[&str], text: &str| assert_eq!(summary(&cluster(roles)), text);
        ends(&["leader", "follower", "unreachable"], "quorum ok (2 of 3 alive). Can lose 0 more. next: start s3");
        ends(
            &["follower", "unreachable", "unreachable"],
            "no leader (1 of 3 voters alive, 2 needed). next: start s2, s3",
        );
        ends(
            &["leader"],
            "quorum ok (1 of 1 alive). Can lose 0 more. next: add two servers with `caractrl servers join-token`",
        );
        assert!(summary(&cluster(&["leader", "follower"])).contains("even number"));
    }
}
