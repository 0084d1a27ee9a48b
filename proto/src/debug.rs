//! How messages that hold secrets print themselves: everything but those. Messages end up in logs through `{:?}`.

use std::fmt::{Debug, Formatter, Result};

use crate::agent::EnrollRequest;
use crate::cluster::{
    Header, HttpPart, HttpRequest, JoinRequest, JoinResponse, PullSealingKeyResponse, RecoverTokenResponse,
};
use crate::workload::EnvVar;

impl Debug for EnrollRequest {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut shown = f.debug_struct("EnrollRequest");
        shown.field("node_name", &self.node_name).field("address", &self.address).field("preflight", &self.preflight);
        shown.finish_non_exhaustive()
    }
}

impl Debug for JoinRequest {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut shown = f.debug_struct("JoinRequest");
        shown.field("name", &self.name).field("address", &self.address).finish_non_exhaustive()
    }
}

impl Debug for JoinResponse {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut shown = f.debug_struct("JoinResponse");
        shown.field("server_id", &self.server_id).field("servers", &self.servers).finish_non_exhaustive()
    }
}

impl Debug for PullSealingKeyResponse {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("PullSealingKeyResponse").finish_non_exhaustive()
    }
}

/// Bodies are manifests, with what people put into environments; a query may hold anything.
impl Debug for HttpRequest {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let path = self.path.split('?').next().unwrap_or_default();
        let mut shown = f.debug_struct("HttpRequest");
        shown.field("method", &self.method).field("path", &path).field("headers", &self.headers);
        shown.field("body_bytes", &self.body.len()).field("caller", &self.caller).finish_non_exhaustive()
    }
}

impl Debug for HttpPart {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        let mut shown = f.debug_struct("HttpPart");
        shown.field("status", &self.status).field("data_bytes", &self.data.len()).finish_non_exhaustive()
    }
}

/// Authorization is one of them.
impl Debug for Header {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("Header").field("name", &self.name).finish_non_exhaustive()
    }
}

impl Debug for RecoverTokenResponse {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("RecoverTokenResponse").field("token_id", &self.token_id).finish_non_exhaustive()
    }
}

impl Debug for EnvVar {
    fn fmt(&self, f: &mut Formatter<'_>) -> Result {
        f.debug_struct("EnvVar").field("name", &self.name).finish_non_exhaustive()
    }
}
