//! Workloads in. An App's single container stands directly in its spec; a Database's follows from its engine.

use cara_core::command::ApplyWorkload;
use cara_core::model::{Engine, Ingress, VolumeKind, VolumeSpec, WorkloadKind, WorkloadSpec};
use cara_core::{NodeId, Revision, State, WorkloadUid};
use cara_env::Rng;
use cara_proto::rest;

use super::parse_time;
use super::service::{resources, service};
use crate::engines::{self, Drawn, Wanted};
use crate::error::ApiError;

/// The service that an App's container becomes.
const APP_SERVICE: &str = "app";

/// The kind behind the first word of a path.
pub fn kind_of(path: &str) -> Option<WorkloadKind> {
    match path {
        "apps" => Some(WorkloadKind::App),
        "projects" => Some(WorkloadKind::Project),
        "databases" => Some(WorkloadKind::Database),
        _ => None,
    }
}

/// The first word of a kind's path.
pub fn kind_path(kind: WorkloadKind) -> &'static str {
    match kind {
        WorkloadKind::App => "apps",
        WorkloadKind::Project => "projects",
        WorkloadKind::Database => "databases",
    }
}

/// Refuses another version or kind, by name.
pub(super) fn check_header(api_version: &str, kind: &str, allowed: &[&str]) -> Result<(), ApiError> {
    if api_version != rest::API_VERSION {
        return Err(ApiError::invalid(format!("apiVersion: is {api_version:?}, must be {:?}", rest::API_VERSION)));
    }
    if !allowed.contains(&kind) {
        return Err(ApiError::invalid(format!("kind: is {kind:?}, must be {}", allowed.join(" or "))));
    }
    Ok(())
}

/// The command behind a workload manifest. `rng` draws what a new database needs.
///
/// # Errors
/// Names the field that isn't what it should be; the rules of the domain are checked where they are applied.
pub fn apply_workload(
    state: &State,
    kind: WorkloadKind,
    manifest: rest::WorkloadManifest,
    new_uid: WorkloadUid,
    rng: &dyn Rng,
) -> Result<ApplyWorkload, ApiError> {
    check_header(&manifest.api_version, &manifest.kind, &[kind.as_str()])?;
    let meta = manifest.metadata;
    let node = match &manifest.spec.node {
        Some(name) => Some(find_node(state, name)?),
        None => None,
    };
    Ok(ApplyWorkload {
        uid: new_uid,
        kind,
        spec: spec(state, kind, &meta.name, manifest.spec, rng)?,
        name: meta.name,
        labels: meta.labels,
        annotations: meta.annotations,
        node,
        expect_revision: (meta.resource_version > 0).then_some(Revision(meta.resource_version)),
    })
}

fn find_node(state: &State, name: &str) -> Result<NodeId, ApiError> {
    let found = state.node_by_name(name).or_else(|| state.node(&NodeId::from(name)));
    found.map(|node| node.id.clone()).ok_or_else(|| ApiError::invalid(format!("spec.node: there is no node {name:?}")))
}

fn spec(
    state: &State,
    kind: WorkloadKind,
    name: &str,
    mut from: rest::WorkloadSpec,
    rng: &dyn Rng,
) -> Result<WorkloadSpec, ApiError> {
    let frame = WorkloadSpec {
        expire_at_ms: match from.expire_at.take() {
            Some(text) => Some(parse_time(&text).ok_or_else(|| {
                ApiError::invalid(format!("spec.expireAt: {text:?} is not a time like 2030-01-31T12:00:00Z"))
            })?),
            None => None,
        },
        selector: std::mem::take(&mut from.node_selector),
        suspended: from.suspended,
        dependencies: std::mem::take(&mut from.databases),
        ..WorkloadSpec::default()
    };
    check_databases(state, &frame.dependencies)?;
    let body = match kind {
        WorkloadKind::App => app(from)?,
        WorkloadKind::Project => project(from)?,
        WorkloadKind::Database => database(state, name, from, rng)?,
    };
    Ok(WorkloadSpec {
        services: body.services,
        volumes: body.volumes,
        ingress: body.ingress,
        database: body.database,
        ..frame
    })
}

/// A typing error would leave a workload without the variable that it waits for.
fn check_databases(state: &State, names: &[String]) -> Result<(), ApiError> {
    let unknown = |name: &&String| state.workload_by_name(WorkloadKind::Database, name).is_none();
    match names.iter().enumerate().find(|(_, name)| unknown(name)) {
        Some((at, name)) => Err(ApiError::Bad {
            status: http::StatusCode::BAD_REQUEST,
            code: "unknown-database",
            detail: format!("spec.databases[{at}]: there is no Database {name:?}"),
            hint: "apply the Database first; caractrl get databases lists those that there are",
        }),
        None => Ok(()),
    }
}

fn app(from: rest::WorkloadSpec) -> Result<WorkloadSpec, ApiError> {
    if !from.services.is_empty() {
        let text = "spec.services: only a Project has services; an App has its image in spec.image";
        return Err(ApiError::invalid(text));
    }
    check_no_engine(&from)?;
    body(|_| "spec".to_owned(), vec![single(&from)], from.volumes, from.ingress)
}

fn project(from: rest::WorkloadSpec) -> Result<WorkloadSpec, ApiError> {
    if single(&from) != empty_single() {
        let text = "spec: a Project lists its containers in spec.services, not in spec itself";
        return Err(ApiError::invalid(text));
    }
    check_no_engine(&from)?;
    body(|at| format!("spec.services[{at}]"), from.services, from.volumes, from.ingress)
}

fn check_no_engine(from: &rest::WorkloadSpec) -> Result<(), ApiError> {
    if from.engine.is_empty() && from.version.is_empty() && !from.wal_archive {
        return Ok(());
    }
    Err(ApiError::invalid("spec.engine: only a Database has an engine, a version and a walArchive"))
}

/// A new database draws its password and its port; a known one keeps them, and its engine.
fn database(state: &State, name: &str, from: rest::WorkloadSpec, rng: &dyn Rng) -> Result<WorkloadSpec, ApiError> {
    let container = rest::ServiceSpec { resources: None, ..single(&from) };
    if container != empty_single() || !from.services.is_empty() || !from.volumes.is_empty() || !from.ingress.is_empty()
    {
        return Err(ApiError::invalid(
            "spec: a Database's container follows from its engine; leave out image, command, args, env, ports, \
             healthCheck, volumes, volumeMounts, services and ingress",
        ));
    }
    let engine = Engine::parse(&from.engine).ok_or_else(|| {
        ApiError::invalid(format!("spec.engine: is {:?}, must be postgres, mysql or redis", from.engine))
    })?;
    let known = state.workload_by_name(WorkloadKind::Database, name);
    if let Some(before) = known.and_then(|known| known.spec.database.as_ref()).filter(|before| before.engine != engine)
    {
        return Err(ApiError::invalid(format!(
            "spec.engine: {name} is a {} database and stays one; make another for {engine}",
            before.engine
        )));
    }
    let resources = from.resources.map(|asked| resources("spec.resources", &asked)).transpose()?;
    let drawn = known.and_then(Drawn::of).unwrap_or_else(|| Drawn::new(state, rng));
    let wanted = Wanted { engine, version: from.version, archive: from.wal_archive, resources };
    engines::spec(wanted, &drawn).map_err(ApiError::invalid)
}

/// The container that stands directly in a spec.
fn single(from: &rest::WorkloadSpec) -> rest::ServiceSpec {
    rest::ServiceSpec {
        name: APP_SERVICE.into(),
        image: from.image.clone(),
        command: from.command.clone(),
        args: from.args.clone(),
        env: from.env.clone(),
        ports: from.ports.clone(),
        volume_mounts: from.volume_mounts.clone(),
        health_check: from.health_check.clone(),
        resources: from.resources.clone(),
    }
}

fn empty_single() -> rest::ServiceSpec {
    rest::ServiceSpec { name: APP_SERVICE.into(), ..rest::ServiceSpec::default() }
}

fn body(
    path: impl Fn(usize) -> String,
    services: Vec<rest::ServiceSpec>,
    volumes: Vec<rest::VolumeSpec>,
    ingresses: Vec<rest::Ingress>,
) -> Result<WorkloadSpec, ApiError> {
    Ok(WorkloadSpec {
        services: services.into_iter().enumerate().map(|(at, s)| service(&path(at), s)).collect::<Result<_, _>>()?,
        volumes: volumes.into_iter().enumerate().map(volume).collect::<Result<_, _>>()?,
        ingress: ingresses.into_iter().map(ingress).collect(),
        ..WorkloadSpec::default()
    })
}

fn volume((at, from): (usize, rest::VolumeSpec)) -> Result<VolumeSpec, ApiError> {
    let kind = VolumeKind::parse(&from.r#type).ok_or_else(|| {
        ApiError::invalid(format!("spec.volumes[{at}].type: is {:?}, must be Ephemeral or Managed", from.r#type))
    })?;
    Ok(VolumeSpec { name: from.name, kind })
}

fn ingress(from: rest::Ingress) -> Ingress {
    Ingress {
        name: from.name,
        host: from.host,
        service: from.target.service,
        port: u32::from(from.target.port),
        scope: from.access.map(|a| a.scope).unwrap_or_default(),
    }
}
