//! The database engines that can be asked for by name: one table, and what follows from it. A Database becomes an
//! ordinary workload of one service with managed volumes; nothing below knows of engines.
//!
//! What a row says counts for databases that are applied from then on; what is in the log stays as it is.

use std::collections::BTreeMap;

use cara_core::State;
use cara_core::model::{
    DatabaseSpec, Engine, HealthCheck, Port, Probe, Protocol, Resources, ServiceSpec, VolumeKind, VolumeMount,
    VolumeSpec, Workload, WorkloadKind, WorkloadSpec,
};
use cara_env::Rng;

use crate::wire::reached_at;

/// The service that a database's container becomes.
const SERVICE: &str = "db";
/// Its data.
const DATA_VOLUME: &str = "data";
/// Its archived write-ahead log.
const ARCHIVE_VOLUME: &str = "wal";
/// Host ports of databases: below those that systems hand out by themselves (from 32768), above those in common use.
const HOST_PORTS: std::ops::Range<u32> = 20_000..30_000;
/// Bytes of a password; in hex, so that no URL and no shell has to quote it.
const PASSWORD_BYTES: usize = 16;
/// Between two probes. A move waits for the first good one.
const PROBE_INTERVAL_MS: u32 = 2_000;
/// One probe starts a client program, which takes a while on a busy machine.
const PROBE_TIMEOUT_MS: u32 = 5_000;

struct Recipe {
    engine: Engine,
    image: &'static str,
    /// Used when none is asked for.
    version: &'static str,
    port: u32,
    data_path: &'static str,
    env: &'static [(&'static str, &'static str)],
    /// Variables that hold the password; the first is where it is read back from.
    passwords: &'static [&'static str],
    /// Empty = the image's own.
    command: &'static [&'static str],
    /// Exit code 0 = it takes queries over the network: images start once without it to set themselves up.
    probe: &'static [&'static str],
    start_period_ms: u32,
    /// Path and command with an archive.
    archive: Option<(&'static str, &'static [&'static str])>,
    /// In front of, and behind `password@host:port`.
    url: (&'static str, &'static str),
}

const RECIPES: [Recipe; 3] = [
    Recipe {
        engine: Engine::Postgres,
        image: "postgres",
        version: "16",
        port: 5432,
        data_path: "/var/lib/postgresql/data",
        // A folder below the mount: a volume's root may have names that initdb doesn't expect.
        env: &[("POSTGRES_USER", "app"), ("POSTGRES_DB", "app"), ("PGDATA", "/var/lib/postgresql/data/pgdata")],
        passwords: &["POSTGRES_PASSWORD"],
        command: &[],
        probe: &["pg_isready", "-h", "127.0.0.1", "-U", "app", "-d", "app"],
        start_period_ms: 60_000,
        archive: Some((
            "/wal-archive",
            &[
                "sh",
                "-c",
                "chown postgres /wal-archive && exec docker-entrypoint.sh postgres -c archive_mode=on \
                 -c 'archive_command=test ! -f /wal-archive/%f && cp %p /wal-archive/%f'",
            ],
        )),
        url: ("postgres://app:", "/app"),
    },
    Recipe {
        engine: Engine::Mysql,
        image: "mysql",
        version: "8.4",
        port: 3306,
        data_path: "/var/lib/mysql",
        env: &[("MYSQL_USER", "app"), ("MYSQL_DATABASE", "app")],
        passwords: &["MYSQL_PASSWORD", "MYSQL_ROOT_PASSWORD"],
        command: &[],
        probe: &["sh", "-c", "MYSQL_PWD=\"$MYSQL_PASSWORD\" mysqladmin ping -h 127.0.0.1 -u app --silent"],
        start_period_ms: 120_000,
        archive: None,
        url: ("mysql://app:", "/app"),
    },
    Recipe {
        engine: Engine::Redis,
        image: "redis",
        version: "7",
        port: 6379,
        data_path: "/data",
        env: &[],
        passwords: &["REDIS_PASSWORD"],
        command: &[
            "sh",
            "-c",
            "exec docker-entrypoint.sh redis-server --appendonly yes --requirepass \"$REDIS_PASSWORD\"",
        ],
        probe: &["sh", "-c", "REDISCLI_AUTH=\"$REDIS_PASSWORD\" redis-cli ping | grep -q PONG"],
        start_period_ms: 10_000,
        archive: None,
        url: ("redis://:", "/0"),
    },
];

fn recipe(engine: Engine) -> &'static Recipe {
    let found = RECIPES.iter().find(|recipe| recipe.engine == engine);
    found.expect("each engine has a row; a test goes through all of them")
}

/// What a user says about a database.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Which engine.
    pub engine: Engine,
    /// Empty = the table's.
    pub version: String,
    /// Keep an archive of the write-ahead log.
    pub archive: bool,
    /// What its container asks for.
    pub resources: Option<Resources>,
}

/// What is drawn once for a database, and stays as long as it exists.
#[derive(Clone, PartialEq, Eq)]
pub struct Drawn {
    password: String,
    host_port: u32,
}

impl Drawn {
    /// Of a database that exists; none when it isn't one of ours.
    pub fn of(workload: &Workload) -> Option<Drawn> {
        let recipe = recipe(workload.spec.database.as_ref()?.engine);
        let service = workload.spec.services.first()?;
        let password = service.env.get(*recipe.passwords.first()?)?.clone();
        Some(Drawn { password, host_port: service.ports.first()?.host_port? })
    }

    /// For a new one: a password, and a host port that no workload has anywhere, so that no move is refused for it.
    pub fn new(state: &State, rng: &dyn Rng) -> Drawn {
        let services = state.workloads().flat_map(|workload| &workload.spec.services);
        let taken: std::collections::BTreeSet<u32> =
            services.flat_map(|service| &service.ports).filter_map(|port| port.host_port).collect();
        let count = HOST_PORTS.end - HOST_PORTS.start;
        let start = u32::try_from(rng.below(u64::from(count))).unwrap_or(0);
        let mut ports = (0..count).map(|at| HOST_PORTS.start + (start + at) % count);
        // When all are taken two share one, and can't be on one node: the scheduler says so.
        let host_port = ports.find(|port| !taken.contains(port)).unwrap_or(HOST_PORTS.start + start);
        Drawn { password: cara_env::hex(rng, PASSWORD_BYTES), host_port }
    }
}

/// The spec behind a database: everything but selector, end and suspension.
///
/// # Errors
/// Names the field that the engine can't do.
pub fn spec(wanted: Wanted, drawn: &Drawn) -> Result<WorkloadSpec, String> {
    let recipe = recipe(wanted.engine);
    let version = if wanted.version.is_empty() { recipe.version.to_owned() } else { wanted.version };
    let mut env: BTreeMap<String, String> =
        recipe.env.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    env.extend(recipe.passwords.iter().map(|name| ((*name).to_owned(), drawn.password.clone())));
    let mut volumes = vec![(DATA_VOLUME, recipe.data_path)];
    let mut command = recipe.command;
    if wanted.archive {
        let Some((path, with_archive)) = recipe.archive else {
            return Err(format!("spec.walArchive: {} has no archive of this kind; leave it out", wanted.engine));
        };
        volumes.push((ARCHIVE_VOLUME, path));
        command = with_archive;
    }
    let mount = |(name, path): &(&str, &str)| VolumeMount { name: (*name).into(), mount_path: (*path).into() };
    let service = ServiceSpec {
        name: SERVICE.into(),
        image: format!("{}:{version}", recipe.image),
        command: words(command),
        args: Vec::new(),
        env,
        volume_mounts: volumes.iter().map(mount).collect(),
        ports: vec![Port {
            container_port: recipe.port,
            host_port: Some(drawn.host_port),
            protocol: Protocol::Tcp,
            // Whoever uses it may be on another node.
            bind_address: "0.0.0.0".into(),
        }],
        health_check: Some(HealthCheck {
            probe: Probe::Exec,
            command: words(recipe.probe),
            interval_ms: PROBE_INTERVAL_MS,
            timeout_ms: PROBE_TIMEOUT_MS,
            start_period_ms: recipe.start_period_ms,
            ..HealthCheck::default()
        }),
        resources: wanted.resources,
    };
    let volume = |(name, _): &(&str, &str)| VolumeSpec { name: (*name).into(), kind: VolumeKind::Managed };
    Ok(WorkloadSpec {
        services: vec![service],
        volumes: volumes.iter().map(volume).collect(),
        database: Some(DatabaseSpec { engine: wanted.engine, version }),
        ..WorkloadSpec::default()
    })
}

fn words(words: &[&str]) -> Vec<String> {
    words.iter().map(|word| (*word).to_owned()).collect()
}

/// True when the database keeps an archive.
pub fn has_archive(workload: &Workload) -> bool {
    workload.spec.volumes.iter().any(|volume| volume.name == ARCHIVE_VOLUME)
}

/// Where a database is reached now, password included; none until it is on a node whose address is known.
pub fn url(state: &State, database: &Workload) -> Option<String> {
    let (before, after) = recipe(database.spec.database.as_ref()?.engine).url;
    let Drawn { password, host_port } = Drawn::of(database)?;
    let address = &state.node(&database.placement.as_ref()?.node)?.address;
    let place = reached_at(address, host_port)?;
    Some(format!("{before}{password}@{place}{after}"))
}

/// The variables that tell a workload where the databases are that it uses. They are made when the node is told, not
/// when the manifest is applied: a database that has moved is somewhere else, and no manifest shows its password.
pub fn variables(state: &State, spec: &WorkloadSpec) -> BTreeMap<String, String> {
    let single = spec.dependencies.len() == 1;
    let variable = |name: &String| {
        let url = url(state, state.workload_by_name(WorkloadKind::Database, name)?)?;
        Some((if single { "DATABASE_URL".to_owned() } else { variable_name(name) }, url))
    };
    spec.dependencies.iter().filter_map(variable).collect()
}

fn variable_name(database: &str) -> String {
    let plain = |c: char| if c.is_ascii_alphanumeric() { c.to_ascii_uppercase() } else { '_' };
    format!("{}_URL", database.chars().map(plain).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drawn() -> Drawn {
        Drawn { password: "secret".into(), host_port: 20_007 }
    }

    fn wanted(engine: Engine) -> Wanted {
        Wanted { engine, version: String::new(), archive: false, resources: None }
    }

    #[test]
    fn each_engine_becomes_a_spec_that_the_rules_take_and_that_is_read_back() {
        for engine in [Engine::Postgres, Engine::Mysql, Engine::Redis] {
            let spec = spec(wanted(engine), &drawn()).unwrap();
            cara_core::spec_rules::check(WorkloadKind::Database, &spec).unwrap();
            let workload = Workload { kind: WorkloadKind::Database, spec, ..Workload::default() };
            assert!(Drawn::of(&workload).unwrap() == drawn(), "{engine}");
            assert_eq!(workload.spec.managed_volumes().collect::<Vec<_>>(), ["data"]);
        }
    }

    #[test]
    fn only_postgres_keeps_an_archive() {
        let with = |engine| spec(Wanted { archive: true, ..wanted(engine) }, &drawn());
        let spec = with(Engine::Postgres).unwrap();
        cara_core::spec_rules::check(WorkloadKind::Database, &spec).unwrap();
        assert!(has_archive(&Workload { spec, ..Workload::default() }));
        assert!(with(Engine::Redis).unwrap_err().contains("spec.walArchive"));
        assert!(with(Engine::Mysql).is_err());
    }

    #[test]
    fn a_variable_is_named_after_its_database() {
        assert_eq!(variable_name("orders-eu.main"), "ORDERS_EU_MAIN_URL");
    }
}
