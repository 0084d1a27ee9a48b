//! A renewal in two phases, and an identity that comes from beside, over real files.

use cara_transport::{Peer, Role};
use rcgen::{
    BasicConstraints, CertificateParams, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, PKCS_ECDSA_P256_SHA256,
    SanType,
};

use super::*;

/// A folder with an identity, and a CA that signs more of them.
struct Ground {
    folder: tempfile::TempDir,
    env: Env,
    ca_pem: String,
    issuer: Issuer<'static, KeyPair>,
    key: String,
}

impl Ground {
    fn new() -> Self {
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key");
        let ca_pem = params.self_signed(&key).expect("a CA").pem();
        let node_key = KeyPair::generate_for(&PKCS_ECDSA_P256_SHA256).expect("a key").serialize_pem();
        let folder = tempfile::tempdir().expect("a folder");
        let ground = Self { folder, env: Env::real(), ca_pem, issuer: Issuer::new(params, key), key: node_key };
        ground.signed("nd_1").save(&*ground.env.files, &ground.config().identity_file()).expect("written");
        ground
    }

    fn config(&self) -> Config {
        Config::new(self.folder.path(), "n1", "n1.lan")
    }

    fn open(&self) -> Keeper {
        Keeper::open(self.env.clone(), &self.config()).expect("usable").expect("there")
    }

    /// Another certificate for this node's key.
    fn signed(&self, node_id: &str) -> Identity {
        let key = KeyPair::from_pem(&self.key).expect("a key");
        let mut params = CertificateParams::default();
        let uri = Peer::uri("cl_1", &Role::Node(node_id.into()));
        params.subject_alt_names = vec![SanType::URI(uri.try_into().expect("ascii"))];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
        Identity {
            node_id: node_id.into(),
            cluster_id: "cl_1".into(),
            certificate_pem: params.signed_by(&key, &self.issuer).expect("signed").pem(),
            key_pem: self.key.clone(),
            ca_pem: self.ca_pem.clone(),
            servers: vec!["s1:7443".into()],
        }
    }

    /// Renews up to the point at which a server is asked. The certificate before and the new one.
    fn renew(&self, keeper: &Keeper) -> (String, String) {
        let before = keeper.identity().certificate_pem;
        let renewed = keeper.renewed(self.signed("nd_1").certificate_pem, String::new()).expect("of this CA");
        keeper.keep_previous().expect("written");
        keeper.put(renewed.clone()).expect("written");
        (before, renewed.certificate_pem)
    }

    /// What is on disk: the identity's certificate, and that of the one before.
    fn on_disk(&self) -> (String, Option<String>) {
        let load =
            |file: PathBuf| Identity::load(&self.env, &file).expect("usable").map(|identity| identity.certificate_pem);
        (load(self.config().identity_file()).expect("there"), load(self.config().previous_file()))
    }
}

#[test]
fn a_renewed_certificate_that_is_accepted_stays_and_the_one_before_goes() {
    let ground = Ground::new();
    let keeper = ground.open();
    let (before, renewed) = ground.renew(&keeper);
    assert_eq!(ground.on_disk(), (renewed.clone(), Some(before)));
    assert_eq!(keeper.dialled().certificate_pem, renewed);
    keeper.accepted(&keeper.dialled());
    assert_eq!(ground.on_disk(), (renewed, None));
}

#[test]
fn a_renewed_certificate_that_is_rejected_goes_and_the_one_before_comes_back() {
    let ground = Ground::new();
    let keeper = ground.open();
    let (before, _) = ground.renew(&keeper);
    assert!(keeper.rejected(&keeper.dialled()), "there is another one to be tried");
    assert_eq!(ground.on_disk(), (before.clone(), None));
    assert_eq!(keeper.dialled().certificate_pem, before);
    assert!(!keeper.rejected(&keeper.dialled()), "and no third");
}

#[test]
fn after_a_crash_at_any_step_the_next_start_finds_the_one_that_works() {
    let ground = Ground::new();
    let (before, renewed) = ground.renew(&ground.open());
    // The agent died before it had asked. The new one is tried first.
    let keeper = ground.open();
    assert_eq!(keeper.dialled().certificate_pem, renewed);
    assert!(keeper.rejected(&keeper.dialled()));
    assert_eq!(ground.on_disk(), (before.clone(), None));
    // It died between the two writes: both files are the same.
    ground.open().keep_previous().expect("written");
    let keeper = ground.open();
    assert!(!keeper.rejected(&keeper.dialled()), "there is no other one");
    assert_eq!(ground.on_disk(), (before, None));
    let (_, renewed) = ground.renew(&keeper);
    let keeper = ground.open();
    keeper.accepted(&keeper.dialled());
    assert_eq!(ground.on_disk(), (renewed, None));
}

#[test]
fn while_nobody_can_be_reached_both_take_turns_and_the_first_accepted_one_stays() {
    let ground = Ground::new();
    let keeper = ground.open();
    let (before, renewed) = ground.renew(&keeper);
    keeper.unreachable();
    assert_eq!(keeper.dialled().certificate_pem, before);
    keeper.unreachable();
    assert_eq!(keeper.dialled().certificate_pem, renewed);
    assert_eq!(ground.on_disk(), (renewed, Some(before.clone())), "nothing is decided");
    keeper.unreachable();
    keeper.accepted(&keeper.dialled());
    assert_eq!(ground.on_disk(), (before, None));
    keeper.unreachable();
    assert!(!keeper.rejected(&keeper.dialled()));
}

#[test]
fn one_before_that_is_rejected_gives_way_to_the_renewed_one() {
    let ground = Ground::new();
    let keeper = ground.open();
    let (_, renewed) = ground.renew(&keeper);
    keeper.unreachable();
    assert!(keeper.rejected(&keeper.dialled()), "the cluster has seen the renewed one in use");
    assert_eq!(ground.on_disk(), (renewed.clone(), None));
    assert_eq!(keeper.dialled().certificate_pem, renewed);
}

#[test]
fn a_damaged_one_before_does_not_keep_the_agent_from_starting() {
    let ground = Ground::new();
    std::fs::write(ground.config().previous_file(), "{").expect("written");
    let keeper = ground.open();
    assert!(!keeper.rejected(&keeper.dialled()));
}

#[test]
fn what_reenroll_left_is_taken_over_by_a_running_agent_and_at_a_start() {
    let ground = Ground::new();
    let keeper = ground.open();
    ground.renew(&keeper);
    assert!(!keeper.adopt(&ground.config()), "nothing is there");
    for running in [true, false] {
        let found = ground.signed("nd_1");
        found.save(&*ground.env.files, &ground.config().reenrolled_file()).expect("written");
        let dialled = if running {
            assert!(keeper.adopt(&ground.config()));
            keeper.dialled()
        } else {
            ground.open().dialled()
        };
        assert_eq!(dialled.certificate_pem, found.certificate_pem);
        assert_eq!(ground.on_disk(), (found.certificate_pem, None), "the one before is of no use any more");
        assert!(!ground.config().reenrolled_file().exists());
    }
    std::fs::remove_file(ground.config().identity_file()).expect("a new disk");
    ground.signed("nd_1").save(&*ground.env.files, &ground.config().reenrolled_file()).expect("written");
    assert_eq!(ground.open().identity().node_id, "nd_1");
}

#[test]
fn the_identity_of_another_node_is_not_taken_over() {
    let ground = Ground::new();
    let other = ground.signed("nd_2");
    other.save(&*ground.env.files, &ground.config().reenrolled_file()).expect("written");
    let keeper = ground.open();
    assert!(!keeper.adopt(&ground.config()));
    assert_eq!(keeper.identity().node_id, "nd_1");
    std::fs::write(ground.config().reenrolled_file(), "{").expect("written");
    assert!(!ground.open().adopt(&ground.config()), "damaged");
}

#[test]
fn a_certificate_of_another_ca_or_node_is_not_saved() {
    let (ground, other) = (Ground::new(), Ground::new());
    let keeper = ground.open();
    let before = ground.on_disk();
    let foreign = keeper.renewed(other.signed("nd_1").certificate_pem, other.ca_pem.clone());
    assert!(foreign.is_err(), "a new CA alone proves nothing");
    assert!(keeper.renewed(ground.signed("nd_2").certificate_pem, String::new()).is_err());
    assert_eq!(ground.on_disk(), before);
}
