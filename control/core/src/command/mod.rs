//! Everything that can be asked of the cluster: one file for each command, with its fields and its `apply`.
//!
//! Each `apply` checks everything first, then changes, then reports. Ids, hashes, certificates and times come in with
//! the command or the context; what must be decided on one revision (epochs, generations, placements) is decided here.

mod advance_ca;
mod advance_drain;
mod advance_move;
mod apply_node;
mod apply_workload;
mod cancel_drain;
mod cancel_move;
mod checkpoint_seen;
mod checkpoint_token_use;
mod checks;
mod close_session;
mod confirm_server;
mod cordon;
mod delete_node;
mod delete_workload;
mod enroll_node;
mod hold_sealing_key;
mod incarnate;
mod init_cluster;
mod lose_node;
mod mint_join_token;
mod mint_reenroll_token;
mod note_clone;
mod open_session;
mod place_workload;
mod put_api_token;
mod put_server;
mod reenroll_node;
mod remove_server;
mod remove_volume;
mod renew_certificate;
mod renew_server;
mod report_status;
mod reseal;
mod restart_workload;
mod revoke_api_token;
mod revoke_certificate;
mod revoke_join_token;
mod revoke_placement;
mod rotate_ca;
mod rotate_sealing_key;
mod set_accepts;
mod set_feature_level;
mod set_labels;
mod set_region;
mod start_drain;
mod start_move;
mod suspend_workload;
mod transition_node;
mod trust_ca;

pub use advance_ca::AdvanceCa;
pub use advance_drain::AdvanceDrain;
pub use advance_move::AdvanceMove;
pub use apply_node::ApplyNode;
pub use apply_workload::ApplyWorkload;
pub use cancel_drain::CancelDrain;
pub use cancel_move::CancelMove;
pub use checkpoint_seen::{CheckpointSeen, Seen};
pub use checkpoint_token_use::{ApiTokenUse, CheckpointTokenUse};
pub use close_session::CloseSession;
pub use confirm_server::ConfirmServer;
pub use cordon::{Cordon, Uncordon};
pub use delete_node::DeleteNode;
pub use delete_workload::DeleteWorkload;
pub use enroll_node::EnrollNode;
pub use hold_sealing_key::HoldSealingKey;
pub use incarnate::Incarnate;
pub use init_cluster::InitCluster;
pub use lose_node::LoseNode;
pub use mint_join_token::MintJoinToken;
pub use mint_reenroll_token::MintReenrollToken;
pub use note_clone::NoteClone;
pub use open_session::OpenSession;
pub use place_workload::PlaceWorkload;
pub use put_api_token::PutApiToken;
pub use put_server::PutServer;
pub use reenroll_node::ReenrollNode;
pub use remove_server::RemoveServer;
pub use remove_volume::RemoveVolume;
pub use renew_certificate::RenewCertificate;
pub use renew_server::RenewServer;
pub use report_status::ReportStatus;
pub use reseal::Reseal;
pub use restart_workload::RestartWorkload;
pub use revoke_api_token::RevokeApiToken;
pub use revoke_certificate::RevokeCertificate;
pub use revoke_join_token::RevokeJoinToken;
pub use revoke_placement::RevokePlacement;
pub use rotate_ca::RotateCa;
pub use rotate_sealing_key::RotateSealingKey;
pub use set_accepts::SetAccepts;
pub use set_feature_level::SetFeatureLevel;
pub use set_labels::SetLabels;
pub use set_region::SetRegion;
pub use start_drain::{StartDrain, plan_drain};
pub use start_move::{StartMove, plan_move};
pub use suspend_workload::{ResumeWorkload, SuspendWorkload};
pub use transition_node::TransitionNode;
pub use trust_ca::TrustCa;

use checks::{
    came_in, check_ca_pem, check_certificate, check_fingerprint_free, check_generation, check_hash, check_id,
    check_issuer, check_message, check_next_key, check_not_moving, check_revision, check_sealed, check_sealed_under,
    check_session, check_text, check_token_node, clip_facts, move_settings,
};
pub(crate) use checks::{check_join_token, check_node_name, clip};

use crate::entry::Context;
use crate::event::Event;
use crate::rejected::{Problem, Rejected};
use crate::state::State;
use crate::wire::wire_oneof;

wire_oneof! {
    /// What is asked. The numbers are the wire's: append only.
    Command,
    /// What a command of a newer version decodes to; the codec refuses it, so that no two servers apply it differently.
    none Unknown
    {
        /// Makes the cluster.
        1 => InitCluster(InitCluster),
        /// Admits a server, or changes one.
        2 => PutServer(PutServer),
        /// Removes a server.
        3 => RemoveServer(RemoveServer),
        /// Makes a join token.
        4 => MintJoinToken(MintJoinToken),
        /// Takes a join token back.
        5 => RevokeJoinToken(RevokeJoinToken),
        /// Lets a machine in.
        6 => EnrollNode(EnrollNode),
        /// Gives a node its next certificate.
        7 => RenewCertificate(RenewCertificate),
        /// Shuts a node out.
        8 => RevokeCertificate(RevokeCertificate),
        /// A node's agent connected.
        9 => OpenSession(OpenSession),
        /// A node's agent said goodbye.
        10 => CloseSession(CloseSession),
        /// A node's heartbeats stopped, or came back.
        11 => TransitionNode(TransitionNode),
        /// Keeps last-seen times over a change of leader.
        12 => CheckpointSeen(CheckpointSeen),
        /// No new placements on a node.
        13 => Cordon(Cordon),
        /// New placements again.
        14 => Uncordon(Uncordon),
        /// Replaces a node's labels.
        15 => SetLabels(SetLabels),
        /// Sets which kinds a node takes.
        16 => SetAccepts(SetAccepts),
        /// A node's manifest.
        17 => ApplyNode(ApplyNode),
        /// Removes an empty node.
        18 => DeleteNode(DeleteNode),
        /// Creates or updates a workload.
        19 => ApplyWorkload(ApplyWorkload),
        /// Removes a workload.
        20 => DeleteWorkload(DeleteWorkload),
        /// Finds a node for a workload.
        21 => PlaceWorkload(PlaceWorkload),
        /// Takes a placement back.
        22 => RevokePlacement(RevokePlacement),
        /// What an agent says that runs.
        23 => ReportStatus(ReportStatus),
        /// Makes an API token.
        24 => PutApiToken(PutApiToken),
        /// Takes an API token back.
        25 => RevokeApiToken(RevokeApiToken),
        /// Lets newer commands in.
        26 => SetFeatureLevel(SetFeatureLevel),
        /// Fences everything from before a restore.
        27 => Incarnate(Incarnate),
        /// Begins a move.
        28 => StartMove(StartMove),
        /// A move's next step.
        29 => AdvanceMove(AdvanceMove),
        /// Takes a move back.
        30 => CancelMove(CancelMove),
        /// Begins to empty a node.
        31 => StartDrain(StartDrain),
        /// A drain's next step.
        32 => AdvanceDrain(AdvanceDrain),
        /// Ends a drain.
        33 => CancelDrain(CancelDrain),
        /// Gives a node up, with all that it has.
        34 => LoseNode(LoseNode),
        /// Starts a workload again.
        35 => RestartWorkload(RestartWorkload),
        /// Stops a workload and keeps it.
        36 => SuspendWorkload(SuspendWorkload),
        /// Lets a suspended workload run.
        37 => ResumeWorkload(ResumeWorkload),
        /// Removes a volume that a node keeps in quarantine.
        38 => RemoveVolume(RemoveVolume),
        /// Makes the token with which one node comes back.
        39 => MintReenrollToken(MintReenrollToken),
        /// Lets a machine back in as a node that is known.
        40 => ReenrollNode(ReenrollNode),
        /// A second machine with a copy of a node's identity was refused.
        41 => NoteClone(NoteClone),
        /// A machine trusts the next CA.
        43 => TrustCa(TrustCa),
        /// Gives a server its next certificate.
        44 => RenewServer(RenewServer),
        /// A server uses its certificate, and the one before no more.
        45 => ConfirmServer(ConfirmServer),
        /// Begins to replace the CA.
        46 => RotateCa(RotateCa),
        /// The next step of replacing the CA.
        47 => AdvanceCa(AdvanceCa),
        /// Begins to replace the sealing key.
        48 => RotateSealingKey(RotateSealingKey),
        /// Keeps the last use of API tokens.
        49 => CheckpointTokenUse(CheckpointTokenUse),
        /// Says where a node stands.
        53 => SetRegion(SetRegion),
        /// A server has the next sealing key.
        54 => HoldSealingKey(HoldSealingKey),
        /// All secrets, sealed under the next key.
        55 => Reseal(Reseal),
    }
}

impl Command {
    /// What agents report, how their sessions come and go and how moves go on is not audited: nobody asked for it, nodes
    /// and moves have their own records, and a flapping fleet would push out what people did.
    pub(crate) fn is_audited(&self) -> bool {
        !matches!(
            self,
            Command::ReportStatus(_)
                | Command::CheckpointSeen(_)
                | Command::CheckpointTokenUse(_)
                | Command::OpenSession(_)
                | Command::CloseSession(_)
                | Command::TransitionNode(_)
                | Command::NoteClone(_)
                | Command::AdvanceMove(_)
                | Command::AdvanceDrain(_)
                | Command::TrustCa(_)
                | Command::ConfirmServer(_)
                | Command::HoldSealingKey(_)
        )
    }

    pub(crate) fn apply(self, state: &mut State, cx: &Context) -> Result<Vec<Event>, Rejected> {
        if state.cluster().is_none() && !matches!(self, Command::InitCluster(_)) {
            return Err(Rejected::NotInitialised {});
        }
        match self {
            Command::Unknown => Err(Problem::new("command", "is not one that this version knows").into()),
            Command::InitCluster(c) => init_cluster::apply(state, cx, c),
            Command::PutServer(c) => put_server::apply(state, cx, c),
            Command::RemoveServer(c) => remove_server::apply(state, c),
            Command::MintJoinToken(c) => mint_join_token::apply(state, cx, c),
            Command::RevokeJoinToken(c) => revoke_join_token::apply(state, c),
            Command::EnrollNode(c) => enroll_node::apply(state, cx, c),
            Command::RenewCertificate(c) => renew_certificate::apply(state, cx, c),
            Command::RevokeCertificate(c) => revoke_certificate::apply(state, cx, c),
            Command::OpenSession(c) => open_session::apply(state, cx, c),
            Command::CloseSession(c) => close_session::apply(state, cx, c),
            Command::TransitionNode(c) => transition_node::apply(state, cx, c),
            Command::CheckpointSeen(c) => checkpoint_seen::apply(state, c),
            Command::CheckpointTokenUse(c) => checkpoint_token_use::apply(state, c),
            Command::Cordon(c) => cordon::apply(state, cx, c.node, c.reason, false),
            Command::Uncordon(c) => cordon::apply(state, cx, c.node, c.reason, true),
            Command::SetLabels(c) => set_labels::apply(state, cx, c),
            Command::SetAccepts(c) => set_accepts::apply(state, cx, c),
            Command::ApplyNode(c) => apply_node::apply(state, cx, c),
            Command::DeleteNode(c) => delete_node::apply(state, c),
            Command::ApplyWorkload(c) => apply_workload::apply(state, cx, c),
            Command::DeleteWorkload(c) => delete_workload::apply(state, cx, c),
            Command::PlaceWorkload(c) => place_workload::apply(state, cx, c),
            Command::RevokePlacement(c) => revoke_placement::apply(state, cx, c),
            Command::ReportStatus(c) => report_status::apply(state, cx, c),
            Command::PutApiToken(c) => put_api_token::apply(state, cx, c),
            Command::RevokeApiToken(c) => revoke_api_token::apply(state, cx, c),
            Command::SetFeatureLevel(c) => set_feature_level::apply(state, cx, c),
            Command::Incarnate(c) => incarnate::apply(state, cx, c),
            Command::StartMove(c) => start_move::apply(state, cx, c),
            Command::AdvanceMove(c) => advance_move::apply(state, cx, c),
            Command::CancelMove(c) => cancel_move::apply(state, cx, c),
            Command::StartDrain(c) => start_drain::apply(state, cx, c),
            Command::AdvanceDrain(c) => advance_drain::apply(state, cx, c),
            Command::CancelDrain(c) => cancel_drain::apply(state, cx, c),
            Command::LoseNode(c) => lose_node::apply(state, cx, c),
            Command::RestartWorkload(c) => restart_workload::apply(state, cx, c),
            Command::SuspendWorkload(c) => suspend_workload::apply(state, cx, &c.uid, c.expect_revision, true),
            Command::ResumeWorkload(c) => suspend_workload::apply(state, cx, &c.uid, c.expect_revision, false),
            Command::RemoveVolume(c) => remove_volume::apply(state, cx, c),
            Command::MintReenrollToken(c) => mint_reenroll_token::apply(state, cx, c),
            Command::ReenrollNode(c) => reenroll_node::apply(state, cx, c),
            Command::NoteClone(c) => note_clone::apply(state, cx, c),
            Command::TrustCa(c) => trust_ca::apply(state, cx, c),
            Command::RenewServer(c) => renew_server::apply(state, cx, c),
            Command::ConfirmServer(c) => confirm_server::apply(state, cx, c),
            Command::RotateCa(c) => rotate_ca::apply(state, cx, c),
            Command::AdvanceCa(c) => advance_ca::apply(state, cx, c),
            Command::SetRegion(c) => set_region::apply(state, cx, c),
            Command::RotateSealingKey(c) => rotate_sealing_key::apply(state, cx, c),
            Command::HoldSealingKey(c) => hold_sealing_key::apply(state, cx, c),
            Command::Reseal(c) => reseal::apply(state, cx, c),
        }
    }
}
