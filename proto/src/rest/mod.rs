//! JSON bodies of the operator's API, one module per noun.
//!
//! Manifests use camelCase keys as people type them; unknown keys are errors on the way in, so that a typo never
//! passes silently. What spans several nodes (moves, drains, placement) has snake_case keys instead. Lists are `{apiVersion, kind: "<Kind>List", revision, items}`; `items` is never null. Times are
//! RFC 3339 UTC.

mod api_token;
mod audit;
mod ca;
mod drains;
mod lost;
mod metadata;
mod moves;
mod node;
mod node_health;
mod node_network;
mod placement;
mod problem;
mod sealing;
mod server;
mod token;
mod watch;
mod workload;

pub use api_token::{ApiTokenRequest, ApiTokenView, MintedApiToken};
pub use audit::{AuditPage, AuditRecordView};
pub use ca::{CaHeldBack, CaRotateRequest, CaView};
pub use drains::{BlockedItem, DrainItem, DrainPlan, DrainView};
pub use lost::{GivenUp, LostRequest, LostView, NodeVolume};
pub use metadata::{API_VERSION, List, Metadata};
pub use moves::{
    AppMoveStep, AppMoveView, Items, MovePlan, MoveRequest, MoveStepView, MoveTransfer, MoveView, NodeChoice,
};
pub use node::{
    Accepts, AgentInfo, CertificateView, Condition, ConnectionEvent, NodeManifest, NodeSpec, NodeStatus, SessionView,
};
pub use node_health::{NodeHealth, NodeRegion};
pub use node_network::{Network, Throughput};
pub use placement::{PlacementReport, PlacementRequest};
pub use problem::{PROBLEM_TYPE, Problem};
pub use sealing::{SealingKeyRotateRequest, SealingKeyView};
pub use server::{ClusterView, ServerView};
pub use token::{JoinCommands, JoinTokenRequest, JoinTokenView, MintedToken, ReenrollToken};
pub use watch::WatchEvent;
pub use workload::{
    ContainerView, DatabaseConnection, Endpoint, EnvVar, HealthCheck, Ingress, IngressAccess, IngressTarget,
    PlacementView, Port, Rejection, Resources, ServiceSpec, VolumeMount, VolumeSpec, WorkloadManifest, WorkloadSpec,
    WorkloadStatus,
};
