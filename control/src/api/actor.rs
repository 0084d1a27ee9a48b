//! Who asks: for the audit, and how far they reach.

use std::fmt;

use cara_core::TokenId;

use super::reach::Reach;

/// Somebody who was let in.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Actor {
    /// For the audit: `token:<id>`.
    pub name: String,
    /// The token that let them in.
    pub token: TokenId,
    /// `host:port` that the request came from, before it was handed from server to server.
    pub caller: String,
    /// What they may touch.
    pub reach: Reach,
}

impl fmt::Display for Actor {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name)
    }
}

/// Who a change is proposed for: an [`Actor`], or one of the cluster's own, which reach everything and come from nowhere.
#[derive(Debug, Clone, Copy)]
pub struct Who<'a> {
    /// For the audit.
    pub name: &'a str,
    /// `host:port`; may be empty.
    pub caller: &'a str,
    /// None = everything.
    pub reach: Option<&'a Reach>,
}

impl<'a> From<&'a Actor> for Who<'a> {
    fn from(actor: &'a Actor) -> Self {
        Self { name: &actor.name, caller: &actor.caller, reach: Some(&actor.reach) }
    }
}

impl<'a> From<&'a str> for Who<'a> {
    fn from(name: &'a str) -> Self {
        Self { name, caller: "", reach: None }
    }
}

impl<'a> From<&'a String> for Who<'a> {
    fn from(name: &'a String) -> Self {
        name.as_str().into()
    }
}
