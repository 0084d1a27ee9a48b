//! Frames between agents and servers, and between servers.

use cara_proto::{agent, cluster, volume};
use prost::Message;

/// A message is read or refused; what is read is written as the same message.
fn message<M: Message + Default + PartialEq>(bytes: &[u8]) -> Option<M> {
    let message = M::decode(bytes).ok()?;
    let again = M::decode(message.encode_to_vec().as_slice()).expect("written by us");
    assert!(again == message, "written and read again, it is another message");
    Some(message)
}

/// What agents say to servers.
pub fn from_agent(bytes: &[u8]) {
    message::<agent::AgentFrame>(bytes);
    message::<agent::EnrollRequest>(bytes);
    message::<agent::RenewRequest>(bytes);
    message::<agent::LogChunk>(bytes);
}

/// What servers say to agents.
pub fn from_server(bytes: &[u8]) {
    message::<agent::ServerFrame>(bytes);
    message::<agent::EnrollResponse>(bytes);
    message::<cluster::JoinResponse>(bytes);
    message::<cluster::HttpPart>(bytes);
}

/// What agents say to each other about volumes.
pub fn volumes(bytes: &[u8]) {
    message::<volume::ManifestRequest>(bytes);
    message::<volume::ManifestPage>(bytes);
    message::<volume::ChunksRequest>(bytes);
    message::<volume::Chunk>(bytes);
    message::<volume::TunnelBytes>(bytes);
}

/// What servers say to each other for replication.
pub fn replication(bytes: &[u8]) {
    raft_store::testing::read_as_every_message(bytes);
}

/// An agent's report, all the way into the state.
pub fn report(bytes: &[u8]) {
    use cara_core::command::ReportStatus;
    let Some(report) = message::<agent::Report>(bytes) else { return };
    let state = crate::log::some_state();
    for node in state.nodes() {
        let Some(session) = &node.session else { continue };
        let statuses = report.statuses.iter().cloned();
        let statuses = statuses.map(|status| cara_control::wire::status_report(status, Vec::new())).collect();
        let command = ReportStatus { node: node.id.clone(), epoch: session.epoch, statuses, ..ReportStatus::default() };
        crate::log::ask(state, command.into());
    }
}
