//! What operators do while a world runs, beside what clients do by the plan: a client with time carries it out.

/// What an operator shall do through the API.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Order {
    /// Take this server out of the cluster.
    RemoveServer(String),
    /// Let all nodes take workloads again.
    UncordonAll,
    /// Shut this node out.
    Revoke(String),
    /// Get a token for this node's machine, and run `cara-agent reenroll` there.
    Reenrol(String),
    /// Empty this node and delete it.
    DeleteNode(String),
}

impl Order {
    /// Orders about one of these are carried out one after the other.
    pub fn subject(&self) -> &str {
        match self {
            Self::UncordonAll => "",
            Self::RemoveServer(name) | Self::Revoke(name) | Self::Reenrol(name) | Self::DeleteNode(name) => name,
        }
    }
}
