//! The kinds of objects and the words that people use for them.

use crate::failure::Failure;
use crate::suggest::closest;

/// What can be listed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Kind {
    /// Machines that run containers.
    Node,
    /// Workloads of one container.
    App,
    /// Workloads of several containers on one node.
    Project,
    /// Databases.
    Database,
    /// Apps, projects and databases together.
    Workload,
    /// Raft members.
    Server,
    /// Join tokens of nodes.
    Token,
    /// API tokens.
    ApiToken,
}

const WORDS: [(Kind, &[&str]); 8] = [
    (Kind::Node, &["nodes", "node", "no"]),
    (Kind::App, &["apps", "app"]),
    (Kind::Project, &["projects", "project", "pj"]),
    (Kind::Database, &["databases", "database", "db"]),
    (Kind::Workload, &["workloads", "workload", "wl", "all"]),
    (Kind::Server, &["servers", "server"]),
    (Kind::Token, &["join-tokens", "join-token"]),
    (Kind::ApiToken, &["api-tokens", "api-token", "tokens", "token"]),
];

impl Kind {
    /// The kinds that can be deployed, in the order in which a bare name is looked for.
    pub const WORKLOADS: [Self; 3] = [Self::App, Self::Project, Self::Database];

    /// The kind that a word means, singular, plural or short.
    pub fn find(word: &str) -> Option<Self> {
        let word = word.to_ascii_lowercase();
        WORDS.iter().find(|(_, words)| words.contains(&word.as_str())).map(|(kind, _)| *kind)
    }

    /// `Node`, as in manifests.
    pub fn title(self) -> &'static str {
        match self {
            Self::Node => "Node",
            Self::App => "App",
            Self::Project => "Project",
            Self::Database => "Database",
            Self::Workload => "Workload",
            Self::Server => "Server",
            Self::Token => "JoinToken",
            Self::ApiToken => "ApiToken",
        }
    }

    /// The kind of a manifest's `kind`.
    pub fn from_title(title: &str) -> Option<Self> {
        WORDS.iter().map(|(kind, _)| *kind).find(|kind| kind.title() == title)
    }

    /// `node`, as in `node/w1`.
    pub fn singular(self) -> &'static str {
        WORDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, words)| words[1])
    }

    /// `nodes`, as in people's lists.
    pub fn plural(self) -> &'static str {
        WORDS.iter().find(|(kind, _)| *kind == self).map_or("", |(_, words)| words[0])
    }

    /// Its collection in the API.
    pub fn path(self) -> &'static str {
        match self {
            Self::Node => "/nodes",
            Self::App => "/apps",
            Self::Project => "/projects",
            Self::Database => "/databases",
            Self::Workload => "/workloads",
            Self::Server => "/servers",
            Self::Token => "/nodes/join-tokens",
            Self::ApiToken => "/tokens",
        }
    }
}

impl std::str::FromStr for Kind {
    type Err = Failure;

    fn from_str(word: &str) -> Result<Self, Failure> {
        Self::find(word).ok_or_else(|| {
            let all: Vec<&str> = WORDS.iter().map(|(_, words)| words[0]).collect();
            let next = match closest(word, WORDS.iter().flat_map(|(_, words)| words.iter().copied())) {
                Some(close) => format!("did you mean {close:?}?"),
                None => format!("the kinds are: {}", all.join(", ")),
            };
            Failure::usage(format!("there is no kind {word:?}")).next(next)
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_by_any_of_their_words() {
        for (word, kind) in [
            ("no", Kind::Node),
            ("PJ", Kind::Project),
            ("db", Kind::Database),
            ("app", Kind::App),
            ("Nodes", Kind::Node),
            ("tokens", Kind::ApiToken),
            ("join-tokens", Kind::Token),
        ] {
            assert_eq!(Kind::find(word), Some(kind));
        }
        let failure = "ndoe".parse::<Kind>().expect_err("no kind");
        assert_eq!((failure.exit, failure.next.as_str()), (2, "did you mean \"node\"?"));
        assert!("x".parse::<Kind>().expect_err("no kind").next.contains("nodes, apps"));
    }
}
