//! What the types can't say about a workload: which fields belong to which kind. Amounts, names and everything that
//! depends on the cluster are the servers' to check.

use cara_proto::rest::WorkloadSpec;

use crate::kind::Kind;
use crate::suggest::closest;

/// Programs that a Database can be.
const ENGINES: [&str; 3] = ["postgres", "mysql", "redis"];

/// Checks one spec; the first thing that is wrong, in a sentence.
pub(super) fn check(kind: Kind, spec: &WorkloadSpec) -> Result<(), String> {
    match kind {
        Kind::Database => database(spec),
        Kind::App | Kind::Project => {
            let of_databases = [
                ("engine", !spec.engine.is_empty()),
                ("version", !spec.version.is_empty()),
                ("walArchive", spec.wal_archive),
            ];
            refuse(&of_databases, |field| {
                format!("spec.{field} is for kind Database only, this is kind {}", kind.title())
            })
        }
        Kind::Node | Kind::Workload | Kind::Server | Kind::Token | Kind::ApiToken => Ok(()),
    }
}

fn database(spec: &WorkloadSpec) -> Result<(), String> {
    let known = || format!("it must be one of {}", ENGINES.join(", "));
    if spec.engine.is_empty() {
        return Err(format!("spec.engine is missing; {}", known()));
    }
    if !ENGINES.contains(&spec.engine.as_str()) {
        let lower = spec.engine.to_ascii_lowercase();
        let close = ENGINES.into_iter().find(|engine| *engine == lower).or_else(|| closest(&lower, ENGINES));
        let next = close.map_or_else(known, |close| format!("did you mean {close:?}?"));
        return Err(format!("spec.engine {:?} is not known; {next}", spec.engine));
    }
    if spec.wal_archive && spec.engine != "postgres" {
        return Err(format!("spec.walArchive is for engine postgres only, this is {}", spec.engine));
    }
    let of_others = [
        ("image", !spec.image.is_empty()),
        ("command", !spec.command.is_empty()),
        ("args", !spec.args.is_empty()),
        ("env", !spec.env.is_empty()),
        ("ports", !spec.ports.is_empty()),
        ("volumeMounts", !spec.volume_mounts.is_empty()),
        ("healthCheck", spec.health_check.is_some()),
        ("services", !spec.services.is_empty()),
        ("volumes", !spec.volumes.is_empty()),
        ("ingress", !spec.ingress.is_empty()),
        ("databases", !spec.databases.is_empty()),
    ];
    refuse(&of_others, |field| format!("spec.{field} is not for kind Database: it follows from spec.engine"))
}

/// Refuses the first field that is set.
fn refuse(fields: &[(&str, bool)], sentence: impl Fn(&str) -> String) -> Result<(), String> {
    match fields.iter().find(|(_, is_set)| *is_set) {
        Some((field, _)) => Err(sentence(field)),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn postgres() -> WorkloadSpec {
        WorkloadSpec { engine: "postgres".into(), wal_archive: true, ..WorkloadSpec::default() }
    }

    fn flaw(kind: Kind, spec: WorkloadSpec) -> String {
        check(kind, &spec).expect_err("a flaw")
    }

    #[test]
    fn a_database_is_its_engine() {
        assert_eq!(check(Kind::Database, &postgres()), Ok(()));
        let engine = |engine: &str| WorkloadSpec { engine: engine.into(), wal_archive: false, ..postgres() };
        assert_eq!(
            flaw(Kind::Database, engine("")),
            "spec.engine is missing; it must be one of postgres, mysql, redis"
        );
        for (wrong, next) in
            [("postgre", "did you mean \"postgres\"?"), ("MySQL", "did you mean \"mysql\"?"), ("oracle", "one of")]
        {
            let flaw = flaw(Kind::Database, engine(wrong));
            assert!(flaw.contains(next), "{flaw}");
        }
        let redis = WorkloadSpec { engine: "redis".into(), ..postgres() };
        assert!(flaw(Kind::Database, redis).contains("walArchive is for engine postgres only"));
        let image = WorkloadSpec { image: "x".into(), ..postgres() };
        assert_eq!(flaw(Kind::Database, image), "spec.image is not for kind Database: it follows from spec.engine");
    }

    #[test]
    fn other_kinds_have_no_engine() {
        let app = WorkloadSpec { image: "x".into(), databases: vec!["ledger".into()], ..WorkloadSpec::default() };
        assert_eq!(check(Kind::App, &app), Ok(()));
        assert_eq!(
            flaw(Kind::App, WorkloadSpec { version: "16".into(), ..app }),
            "spec.version is for kind Database only, this is kind App"
        );
        assert!(flaw(Kind::Project, postgres()).contains("spec.engine is for kind Database only"));
    }
}
