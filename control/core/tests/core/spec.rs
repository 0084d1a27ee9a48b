//! The rules of specs: each story breaks one rule and names the field.

use crate::world::{labels, service};
use cara_core::model::*;
use cara_core::spec_rules;

fn good() -> WorkloadSpec {
    WorkloadSpec {
        services: vec![
            ServiceSpec {
                ports: vec![Port { container_port: 80, host_port: Some(8080), ..Default::default() }],
                ..service("api", "ghcr.io/example/ledger:1.4")
            },
            ServiceSpec {
                env: labels(&[("POSTGRES_PASSWORD", "dev")]),
                volume_mounts: vec![VolumeMount { name: "pg".into(), mount_path: "/var/lib/pg".into() }],
                health_check: Some(HealthCheck { probe: Probe::Tcp, port: 5432, ..Default::default() }),
                ..service("store", "postgres:16")
            },
        ],
        volumes: vec![VolumeSpec { name: "pg".into(), kind: VolumeKind::Ephemeral }],
        ingress: vec![Ingress {
            name: "public".into(),
            host: "ledger.lan.example".into(),
            service: "api".into(),
            port: 80,
            scope: "Internal".into(),
        }],
        selector: labels(&[("site", "hall-b")]),
        ..Default::default()
    }
}

fn check(change: impl FnOnce(&mut WorkloadSpec), expect: &str) {
    let mut spec = good();
    change(&mut spec);
    let problem = spec_rules::check(WorkloadKind::Project, &spec).expect_err(expect);
    assert!(problem.to_string().starts_with(expect), "{problem}");
}

#[test]
fn a_good_spec_is_taken() {
    spec_rules::check(WorkloadKind::Project, &good()).unwrap();
}

#[test]
fn each_broken_rule_names_its_field() {
    check(|s| s.services.clear(), "spec.services: must have at least one");
    check(|s| s.services[1].name = "api".into(), "spec.services[1].name: \"api\" is there twice");
    check(|s| s.services[1].name = "The Store".into(), "spec.services[1].name: ");
    check(|s| s.services[1].image = String::new(), "spec.services[1].image: must not be empty");
    check(|s| s.services[1].image = "a b".into(), "spec.services[1].image: ");
    check(|s| s.services[0].env = labels(&[("A=B", "x")]), "spec.services[0].env: ");
    check(
        |s| s.services[0].env = (0..257).map(|n| (format!("K{n}"), String::new())).collect(),
        "spec.services[0].env: has 257",
    );
    check(|s| s.services[0].args = vec!["nul\0".into()], "spec.services[0].args[0]: ");
    check(|s| s.services[1].volume_mounts[0].name = "data".into(), "spec.services[1].volumeMounts[0].name: ");
    check(|s| s.services[1].volume_mounts[0].mount_path = "pg".into(), "spec.services[1].volumeMounts[0].mountPath: ");
    check(
        |s| s.services[1].volume_mounts[0].mount_path = "/a/../b".into(),
        "spec.services[1].volumeMounts[0].mountPath: ",
    );
    check(
        |s| {
            let mount = s.services[1].volume_mounts[0].clone();
            s.services[1].volume_mounts.push(VolumeMount { mount_path: "/var/lib/pg/".into(), ..mount });
        },
        "spec.services[1].volumeMounts[1].mountPath: \"/var/lib/pg\" is there twice",
    );
    check(
        |s| s.services[0].ports[0].container_port = 0,
        "spec.services[0].ports[0].containerPort: 0 must be 1 to 65535",
    );
    check(|s| s.services[0].ports[0].host_port = Some(65_536), "spec.services[0].ports[0].hostPort: 65536 must be");
    check(|s| s.services[0].ports[0].bind_address = "lan".into(), "spec.services[0].ports[0].bindAddress: ");
    check(
        |s| s.services[1].ports = s.services[0].ports.clone(),
        "spec.services[1].ports[0].hostPort: 8080/tcp is published twice",
    );
    check(|s| s.services[1].health_check.as_mut().unwrap().port = 0, "spec.services[1].healthCheck.port: ");
    check(|s| s.volumes.push(s.volumes[0].clone()), "spec.volumes[1].name: \"pg\" is there twice");
    check(|s| s.ingress.push(s.ingress[0].clone()), "spec.ingress[1].name: \"public\" is there twice");
    check(|s| s.ingress[0].service = "nobody".into(), "spec.ingress[0].target.service: ");
    check(|s| s.ingress[0].port = 70_000, "spec.ingress[0].target.port: ");
    check(|s| s.ingress[0].host = "UPPER.example".into(), "spec.ingress[0].host: ");
    check(|s| s.ingress[0].scope = "Public".into(), "spec.ingress[0].access.scope: ");
    check(|s| s.selector = labels(&[("Site", "x")]), "spec.selector: ");
    check(|s| s.services = vec![service("x", "y"); 33], "spec.services: has 33 entries, at most 32");
}

#[test]
fn health_checks_ask_what_their_probe_needs() {
    let health = |health: HealthCheck| {
        let mut spec = good();
        spec.services[0].health_check = Some(health);
        spec_rules::check(WorkloadKind::Project, &spec).map_err(|problem| problem.field)
    };
    let http = HealthCheck { probe: Probe::Http, path: "/ready".into(), port: 80, ..Default::default() };
    assert_eq!(health(http.clone()), Ok(()));
    assert_eq!(health(HealthCheck { path: "ready".into(), ..http }), Err("spec.services[0].healthCheck.path".into()));
    let exec = HealthCheck { probe: Probe::Exec, command: vec!["true".into()], ..Default::default() };
    assert_eq!(health(exec.clone()), Ok(()));
    assert_eq!(health(HealthCheck { command: vec![], ..exec }), Err("spec.services[0].healthCheck.command".into()));
}

#[test]
fn an_app_has_one_service() {
    let problem = spec_rules::check(WorkloadKind::App, &good()).unwrap_err();
    assert_eq!(problem.to_string(), "spec.services: kind App has exactly one service; use kind Project");
}
