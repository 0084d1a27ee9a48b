//! An agent from start to shutdown.

use std::sync::{Arc, Mutex, PoisonError};

use cara_env::Env;
use cara_proto::agent::{Desired, Report};
use tokio::sync::watch;

use crate::config::Config;
use crate::connect::Connector;
use crate::enrol::{Errand, enrol};
use crate::error::{EnrolError, RunError};
use crate::instance::Life;
use crate::keeper::Keeper;
use crate::labels::Owner;
use crate::ledger::{Ledger, Refused};
use crate::permit::Permits;
use crate::readings;
use crate::reconcile::Reconciler;
use crate::runtime::ContainerRuntime;
use crate::session::Ground;
use crate::staged::Staged;
use crate::transfer;

/// Runs the agent until `shutdown` turns true. Containers keep running when it ends, however it ends.
///
/// # Errors
/// Only before the node is at work: no token, a refused enrolment, a damaged identity or ledger. Later troubles (servers
/// away, engine away, disk full) are logged, reported and outlived.
pub async fn run(
    config: Config,
    env: Env,
    runtime: Arc<dyn ContainerRuntime>,
    mut shutdown: watch::Receiver<bool>,
) -> Result<(), RunError> {
    let keeper = match Keeper::open(env.clone(), &config)? {
        Some(keeper) => keeper,
        None => tokio::select! {
            biased;
            () = asked(&mut shutdown) => return Err(EnrolError::Stopped.into()),
            keeper = first_identity(&config, &env, &*runtime) => keeper?,
        },
    };
    let identity = keeper.identity();
    let ledger = Ledger::open(env.files.clone(), config.ledger_file())?;
    tracing::info!(node = %identity.node_id, cluster = %identity.cluster_id, "this node");
    let owner = Owner { cluster_id: identity.cluster_id.clone(), node_id: identity.node_id.clone() };
    let keeper = Arc::new(keeper);
    let life = Life::begin(env.clone(), config.instance_file());
    let (permits, permit) = Permits::new(env.clock.monotonic());
    let (shared, desired) = Shared::new(ledger);
    let (report, reports) = watch::channel(None::<Report>);
    let (leader, leaders) = watch::channel(None);
    let ground = transfer::Ground {
        env: env.clone(),
        runtime: runtime.clone(),
        keeper: keeper.clone(),
        owner,
        desired,
        leader: leaders,
        connect_deadline: config.connect_deadline,
        call_deadline: config.call_deadline,
        backoff_min: config.backoff_min,
    };
    let bound = transfer::listen::bind(&env, &config.volume_listen, &config.advertise).await;
    let (listener, volume_address) = bound.map_or((None, String::new()), |(l, address)| (Some(l), address));
    let _serving = listener.map(|listener| transfer::listen::open(&ground, listener));
    let staged = Arc::new(Staged::open(env.files.clone(), config.staged_file()));
    let reconciler = Reconciler::new(&config, ground, staged, report, permit);
    let reconciling = cara_env::spawn(reconciler.run());
    let (tell, readings) = watch::channel(None);
    let reading = cara_env::spawn(readings::run(env.clone(), config.clone(), tell));
    let mut connector = Connector::new(Ground {
        env,
        config,
        keeper,
        runtime,
        shared,
        reports,
        readings,
        volume_address,
        leader,
        life,
        permits,
    });
    tokio::select! {
        biased;
        () = asked(&mut shutdown) => {}
        () = connector.run() => {}
    }
    reading.abort();
    reconciling.abort();
    let _aborted = reconciling.await;
    tracing::info!("the agent has ended; containers keep running");
    Ok(())
}

async fn first_identity(config: &Config, env: &Env, runtime: &dyn ContainerRuntime) -> Result<Keeper, RunError> {
    let missing = || RunError::NoToken { folder: config.data_dir.clone() };
    let token = config.token.as_ref().ok_or_else(missing)?;
    let identity = enrol(env, config, token, Some(runtime), &Errand::first(config)).await?;
    tracing::info!(node = %identity.node_id, name = %config.node_name, "enrolled");
    Keeper::open(env.clone(), config)?.ok_or_else(missing)
}

/// Returns once the shutdown was asked for, or can't be any more.
async fn asked(shutdown: &mut watch::Receiver<bool>) {
    drop(shutdown.wait_for(|stop| *stop).await);
}

/// What sessions and the reconciler share.
#[derive(Clone)]
pub(crate) struct Shared {
    ledger: Arc<Mutex<Ledger>>,
    desired: watch::Sender<Option<Arc<Desired>>>,
}

impl Shared {
    pub(crate) fn new(ledger: Ledger) -> (Self, watch::Receiver<Option<Arc<Desired>>>) {
        let (desired, receiver) = watch::channel(ledger.desired().cloned().map(Arc::new));
        (Self { ledger: Arc::new(Mutex::new(ledger)), desired }, receiver)
    }

    /// The fence of the last desired set taken.
    pub(crate) fn fence(&self) -> cara_proto::agent::Fence {
        self.ledger.lock().unwrap_or_else(PoisonError::into_inner).fence()
    }

    /// Offers a desired set to the ledger and, once it is saved, to the reconciler.
    pub(crate) fn offer(&self, desired: Desired) -> Result<(), Refused> {
        // The lock is held over the write: two sessions (an old one ending, a new one starting) keep their order.
        let mut ledger = self.ledger.lock().unwrap_or_else(PoisonError::into_inner);
        if ledger.offer(desired.clone())? {
            self.desired.send_replace(Some(Arc::new(desired)));
        }
        Ok(())
    }
}
