//! Why the engine did not do what it was asked.

use std::time::Duration;

/// A failed call to the engine: operation, subject, cause, next step.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum RuntimeError {
    /// Nothing listens there, or it broke the connection.
    #[error(
        "docker engine at {endpoint} is not reachable: {cause}; check that it runs and that the agent's user may use it"
    )]
    Away {
        /// Where the engine should be.
        endpoint: String,
        /// The reason.
        cause: String,
    },
    /// It took the request and did not answer.
    #[error("{engine} did not answer within {} s ({operation})", .limit.as_secs())]
    Deadline {
        /// `docker engine at unix:///var/run/docker.sock`.
        engine: String,
        /// What was asked.
        operation: String,
        /// How long we waited.
        limit: Duration,
    },
    /// The image is not here and can't be pulled.
    #[error("image {image} is not on this machine and can't be pulled: {cause}; check its name and the registry")]
    ImageMissing {
        /// Its name.
        image: String,
        /// The engine's reason.
        cause: String,
    },
    /// A published port belongs to another process.
    #[error("can't start {container}: {cause}; free the port or choose another host port")]
    PortTaken {
        /// The container.
        container: String,
        /// The engine's reason, with the port.
        cause: String,
    },
    /// An object of this name exists, and it is not ours.
    #[error("{kind} {name} exists and does not belong to this workload; remove or rename it")]
    NotOurs {
        /// `container`, `network` or `volume`.
        kind: &'static str,
        /// Its name.
        name: String,
    },
    /// Everything else that the engine refuses.
    #[error("can't {operation} {subject}: {cause}")]
    Failed {
        /// `start`, `create`, ...
        operation: &'static str,
        /// The object.
        subject: String,
        /// The engine's reason.
        cause: String,
    },
}

impl RuntimeError {
    /// One word for programs, as in `Status.reason`.
    pub fn reason(&self) -> &'static str {
        match self {
            Self::Away { .. } | Self::Deadline { .. } => "EngineAway",
            Self::ImageMissing { .. } => "ImageMissing",
            Self::PortTaken { .. } => "PortTaken",
            Self::NotOurs { .. } => "NameTaken",
            Self::Failed { operation, .. } => match *operation {
                "start" => "StartFailed",
                "create" => "CreateFailed",
                "stop" => "StopFailed",
                "remove" => "RemoveFailed",
                _ => "EngineFailed",
            },
        }
    }
}
