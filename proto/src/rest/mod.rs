//! JSON bodies of the operator's API, one module per noun.
//!
//! Manifests use camelCase keys as people type them; unknown keys are errors on the way in, so that a typo never
//! passes silently. Lists are `{apiVersion, kind: "<Kind>List", revision, items}`; `items` is never null. Times are
//! RFC 3339 UTC.

mod metadata;
mod node;
mod problem;
mod server;
mod token;
mod watch;
mod workload;

pub use metadata::{API_VERSION, List, Metadata};
pub use node::{
    Accepts, AgentInfo, CertificateView, Condition, ConnectionEvent, Network, NodeManifest, NodeSpec, NodeStatus,
    SessionView,
};
pub use problem::{PROBLEM_TYPE, Problem};
pub use server::{ClusterView, ServerView};
pub use token::{JoinTokenRequest, JoinTokenView, MintedToken};
pub use watch::WatchEvent;
pub use workload::{
    ContainerView, EnvVar, Ingress, IngressAccess, IngressTarget, PlacementView, Port, Rejection, ServiceSpec,
    VolumeMount, VolumeSpec, WorkloadManifest, WorkloadSpec, WorkloadStatus,
};
