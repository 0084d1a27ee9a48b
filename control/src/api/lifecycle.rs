//! Suspend, resume, restart: what runs, without a new manifest.

use cara_core::command::{RestartWorkload, ResumeWorkload, SuspendWorkload};
use cara_core::model::WorkloadKind;
use cara_core::{Command, Revision};

use super::rest::Asker;
use super::{Api, find};
use crate::error::ApiError;

/// What is wanted of a workload.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Change {
    /// Stop it, keep its node and its volumes.
    Suspend,
    /// Let it run again.
    Resume,
    /// Stop it and start it where it is.
    Restart,
}

impl Api {
    /// Changes whether a workload runs.
    ///
    /// # Errors
    /// 404 when it isn't there, 409 while it is being moved or deleted, or when it can't be restarted.
    pub async fn change_run(
        &self,
        asker: &Asker,
        kind: WorkloadKind,
        name: &str,
        change: Change,
    ) -> Result<(), ApiError> {
        let uid = self.read_local(|state| find::workload(state, kind, name).map(|workload| workload.uid.clone()))?;
        let expect_revision = asker.if_match.map(Revision);
        let command = match change {
            Change::Suspend => Command::SuspendWorkload(SuspendWorkload { uid, expect_revision }),
            Change::Resume => Command::ResumeWorkload(ResumeWorkload { uid, expect_revision }),
            Change::Restart => Command::RestartWorkload(RestartWorkload { uid, expect_revision }),
        };
        self.propose(&asker.actor, &asker.request_id, command).await.map(drop)
    }
}
