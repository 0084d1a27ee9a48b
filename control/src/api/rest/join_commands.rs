//! The commands that are pasted on a new machine. They have everything inside: the token carries the servers and the CA's
//! fingerprint.

use cara_core::model::TokenPurpose;
use cara_proto::rest::JoinCommands;

/// What the commands are made from.
pub(super) struct Machine<'a> {
    pub(super) purpose: TokenPurpose,
    pub(super) token: &'a str,
    /// The name that the token is bound to.
    pub(super) name: Option<&'a str>,
    /// Where other nodes reach it; without one the agent says its host name.
    pub(super) address: Option<&'a str>,
}

/// One command for each way to run it.
pub(super) fn join_commands(machine: &Machine<'_>) -> JoinCommands {
    let Machine { purpose, token, name, address } = machine;
    if *purpose == TokenPurpose::Server {
        let binary = format!(
            "cara-server join --data-dir /var/lib/cara-server --name NAME --advertise HOST:7443 --token {token}"
        );
        return JoinCommands { binary, docker: String::new() };
    }
    let word = |flag: &str, value: &Option<&str>| value.map(|value| format!(" {flag} {value}")).unwrap_or_default();
    let words = format!("{}{} --token {token}", word("--name", name), word("--advertise", address));
    JoinCommands {
        binary: format!("cara-agent --data-dir /var/lib/cara-agent{words}"),
        // As root: the engine's socket is root's. On the host's network: the agent checks ports of containers there, and
        // other agents reach it under the machine's own address.
        docker: format!(
            "docker run -d --name cara-agent --restart unless-stopped --network host --user 0 \
             -v /var/run/docker.sock:/var/run/docker.sock -v cara-agent:/var/lib/cara \
             caravanserai cara-agent --runtime docker --data-dir /var/lib/cara/agent{words}"
        ),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_command_needs_nothing_to_be_filled_in() {
        let machine =
            Machine { purpose: TokenPurpose::Node, token: "cara-join.x", name: Some("n1"), address: Some("10.0.0.4") };
        let JoinCommands { binary, docker } = join_commands(&machine);
        let words = "--name n1 --advertise 10.0.0.4 --token cara-join.x";
        assert_eq!(binary, format!("cara-agent --data-dir /var/lib/cara-agent {words}"));
        assert!(docker.starts_with("docker run -d ") && docker.ends_with(words), "{docker}");
        assert!(!docker.contains('\n') && !docker.contains("  "), "one line to paste: {docker}");
    }
}
