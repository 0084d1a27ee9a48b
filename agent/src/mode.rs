//! What a node shall do with a workload. The words stand in workload.proto, `Assignment.mode`.

use cara_proto::workload::Assignment;

/// The mode of an assignment. Only [`Mode::Run`] ever starts a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Mode {
    /// Make it run.
    Run,
    /// Its containers are stopped and kept.
    Stop,
    /// Make everything ready for it, and fill its volumes from another node; no container.
    Receive,
    /// Undo a placement that never counted: staged volumes go as well.
    Discard,
    /// It lives elsewhere now: all but its managed volumes goes.
    Retire,
    /// It is deleted: all but its managed volumes goes.
    Remove,
    /// A word of a newer server. Nothing is begun and nothing is undone.
    Unknown,
}

impl Mode {
    /// Of this assignment.
    pub fn of(assignment: &Assignment) -> Self {
        match assignment.mode.as_str() {
            _ if assignment.remove => Self::Remove,
            "" | "run" => Self::Run,
            "stop" => Self::Stop,
            "receive" => Self::Receive,
            "discard" => Self::Discard,
            "retire" => Self::Retire,
            _newer => Self::Unknown,
        }
    }

    /// Does the workload still use its volumes on this node?
    pub fn uses_volumes(self) -> bool {
        match self {
            Self::Run | Self::Stop | Self::Receive | Self::Unknown => true,
            Self::Discard | Self::Retire | Self::Remove => false,
        }
    }
}
