//! Where other agents reach this one for its volumes.

use std::time::Duration;

use cara_env::{Env, Listener};
use cara_proto::volume::volumes_server::VolumesServer;
use cara_transport::Limits;
use tokio::sync::watch;

use super::Ground;
use super::source::VolumesService;

/// Connections at a time: one per move whose source is here, and a drain runs its moves one after another.
const CONNECTIONS_MAX: usize = 64;
/// When the agent ends, transfers are cut off; they go on when it returns.
const DRAIN: Duration = Duration::from_millis(200);

/// Listens; gives the listener and the `host:port` that others shall dial. None when nothing can be listened on: then this
/// node's volumes travel through the relay.
pub(crate) async fn bind(env: &Env, listen: &str, advertise: &str) -> Option<(Box<dyn Listener>, String)> {
    let listener = match env.net.listen(listen).await {
        Ok(listener) => listener,
        Err(error) => {
            // Another agent on this machine has the port, most often; the cluster is told whichever it is.
            let any = format!("{}:0", listen.rsplit_once(':').map_or("0.0.0.0", |(host, _)| host));
            tracing::warn!("can't listen on {listen} for other agents: {error}; trying {any}");
            match env.net.listen(&any).await {
                Ok(listener) => listener,
                Err(error) => {
                    tracing::error!("can't listen on {any} for other agents: {error}; volumes go through the leader");
                    return None;
                }
            }
        }
    };
    let local = listener.local_address();
    let port = local.rsplit_once(':').map_or("", |(_, port)| port);
    let address = advertised(advertise, port);
    tracing::info!("other agents reach this node's volumes at {address}");
    Some((listener, address))
}

fn advertised(host: &str, port: &str) -> String {
    let bare_ipv6 = host.contains(':') && !host.starts_with('[');
    if bare_ipv6 { format!("[{host}]:{port}") } else { format!("{host}:{port}") }
}

/// Answers other agents until the sender of `shutdown` is gone.
pub(super) async fn serve(
    ground: Ground,
    listener: Box<dyn Listener>,
    service: VolumesService,
    shutdown: watch::Receiver<bool>,
) {
    let app = tonic::service::Routes::new(VolumesServer::new(service)).into_axum_router();
    let limits = Limits { connections_max: CONNECTIONS_MAX, drain: DRAIN, ..Limits::default() };
    let tls = ground.keeper.tls().clone();
    cara_transport::serve(&ground.env, listener, tls, app, limits, shutdown).await;
}

/// Begins to answer on a listener, in a task that ends once the returned sender is dropped.
pub(crate) fn open(ground: &Ground, listener: Box<dyn Listener>) -> watch::Sender<bool> {
    let (stop, stopped) = watch::channel(false);
    let service = VolumesService::new(ground.clone());
    drop(cara_env::spawn(serve(ground.clone(), listener, service, stopped)));
    stop
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_ipv6_address_is_put_into_brackets() {
        assert_eq!(advertised("10.0.0.7", "7444"), "10.0.0.7:7444");
        assert_eq!(advertised("n1.example", "7444"), "n1.example:7444");
        assert_eq!(advertised("fd00::7", "7444"), "[fd00::7]:7444");
        assert_eq!(advertised("[fd00::7]", "7444"), "[fd00::7]:7444");
    }

    #[tokio::test]
    async fn a_taken_port_is_replaced_by_a_free_one() {
        let env = Env::real();
        let (_first, taken) = bind(&env, "127.0.0.1:0", "127.0.0.1").await.expect("a port");
        let (_second, other) = bind(&env, &taken, "127.0.0.1").await.expect("another port");
        assert_ne!(taken, other);
    }
}
