//! One file per command. [`run`] takes the arguments to an exit code.

mod answer;
mod apply;
mod ask;
mod audit;
mod cluster;
mod completion;
mod ctx;
mod databases;
mod delete;
mod describe;
mod dev;
mod explain;
mod get;
mod logs;
mod nodes;
mod sealing_key;
mod servers;
mod tokens;
mod version;
mod watch;
mod workloads;

use std::ffi::OsString;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use cara_env::Env;
use clap::Parser;

use crate::access::{self, Wanted};
use crate::cli::{Cli, Command, Global};
use crate::client::{Client, LIMIT_DEFAULT};
use crate::config::{self, Config};
use crate::failure::{Failure, Outcome, exit};
use crate::kind::Kind;
use crate::out::Ui;
use crate::suggest::closest;

/// How long a command waits for a result when nobody says otherwise: an image may have to be pulled.
const WAIT_DEFAULT: Duration = Duration::from_secs(300);
/// A name that is cheap to look for: how many objects are asked for a "did you mean".
const SUGGEST_LIMIT: Duration = Duration::from_secs(2);

/// Carries out one command line (with the program's name first) and says how it went, as an exit code.
pub async fn run(arguments: Vec<OsString>) -> u8 {
    let cli = match Cli::try_parse_from(arguments) {
        Ok(cli) => cli,
        Err(error) => {
            let _ = error.print(); // Nobody is left to be told.
            return if error.use_stderr() { exit::USAGE } else { exit::OK };
        }
    };
    let cx = Context::new(cli.global);
    match dispatch(&cx, cli.command).await {
        Ok(()) => exit::OK,
        Err(failure) => {
            cx.ui.failure(&failure);
            failure.exit
        }
    }
}

async fn dispatch(cx: &Context, command: Command) -> Outcome {
    match command {
        Command::Apply(args) => apply::run(cx, &args).await,
        Command::Get(args) => get::run(cx, &args).await,
        Command::Describe(args) => describe::run(cx, &args).await,
        Command::Delete(args) => delete::run(cx, &args).await,
        Command::Logs(args) => logs::run(cx, &args).await,
        Command::Nodes(args) => nodes::run(cx, args.command).await,
        Command::Apps(args) => workloads::apps(cx, args.command).await,
        Command::Databases(args) => databases::run(cx, args.command).await,
        Command::Projects(args) => workloads::run(cx, Kind::Project, args.command).await,
        Command::Servers(args) => servers::run(cx, args.command).await,
        Command::Tokens(args) => tokens::run(cx, args.command).await,
        Command::Audit(args) => audit::run(cx, args).await,
        Command::Cluster(args) => cluster::run(cx, args.command).await,
        Command::Ctx(args) => ctx::run(cx, args.command),
        Command::Completion(args) => completion::run(cx, args.shell),
        Command::Version => version::run(cx),
        Command::Explain(args) => explain::run(cx, &args.code),
        Command::Dev(args) => dev::run(cx, &args).await,
    }
}

/// What every command has at hand.
pub(crate) struct Context {
    pub env: Env,
    pub ui: Ui,
    pub global: Global,
}

impl Context {
    fn new(global: Global) -> Self {
        let ui = Ui::new(global.output, global.color, !global.no_headers, &variable);
        Self { env: Env::real(), ui, global }
    }

    /// A client of the cluster that is meant.
    pub fn client(&self) -> Outcome<Client> {
        let access = access::resolve(&self.wanted(), &variable, &self.config()?, &*self.env.files)?;
        if access.servers.is_empty() {
            return Err(Failure::new(exit::USAGE, "no-cluster", "which cluster? No server is known")
                .why("neither --server nor CARA_SERVERS is given, and there is no current context")
                .next("`caractrl dev` starts a cluster here; `caractrl ctx set NAME --server ... --token ...` remembers one"));
        }
        let ui = self.ui.clone();
        let client = Client::new(&self.env, &access)?
            .with_limit(self.global.timeout.unwrap_or(LIMIT_DEFAULT))
            .with_stale_reads(self.global.stale)
            .with_notice(Arc::new(move |text| ui.note(&format!("note: {text}"))));
        Ok(client)
    }

    /// What the flags say about access.
    pub fn wanted(&self) -> Wanted {
        let global = self.global.clone();
        Wanted {
            servers: global.server,
            token: global.token,
            ca_fingerprint: global.ca_fingerprint,
            context: global.context,
        }
    }

    /// Where the contexts are saved.
    pub fn config_path(&self) -> Outcome<PathBuf> {
        config::path(&variable).ok_or_else(|| {
            Failure::new(exit::OTHER, "config", "there is no place for the contexts")
                .why("HOME is not set")
                .next("set CARA_CONFIG")
        })
    }

    /// The saved contexts; none where there is no place for them.
    pub fn config(&self) -> Outcome<Config> {
        match config::path(&variable) {
            Some(path) => config::load(&*self.env.files, &path),
            None => Ok(Config::default()),
        }
    }

    /// How long to wait for a result.
    pub fn wait_limit(&self) -> Duration {
        self.global.timeout.unwrap_or(WAIT_DEFAULT)
    }

    /// Now, for ages.
    pub fn now_ms(&self) -> u64 {
        self.env.clock.wall_ms()
    }
}

/// A variable of the environment.
pub(crate) fn variable(name: &str) -> Option<String> {
    std::env::var(name).ok()
}

/// A name as it stands in a path: what isn't allowed in names is percent-encoded, so that it can't change the path.
pub(crate) fn segment(name: &str) -> String {
    let safe = |b: u8| b.is_ascii_alphanumeric() || b"-._".contains(&b);
    let encoded: String =
        name.bytes().map(|b| if safe(b) { char::from(b).to_string() } else { format!("%{b:02X}") }).collect();
    if encoded == "." || encoded == ".." { encoded.replace('.', "%2E") } else { encoded }
}

/// Splits `kind/name`, or takes a kind and an optional name.
pub(crate) fn target(kind: &str, name: Option<&str>) -> Outcome<(Kind, Option<String>)> {
    match (kind.split_once('/'), name) {
        (Some((kind, name)), None) if !name.is_empty() => Ok((kind.parse()?, Some(name.to_owned()))),
        (Some(_), _) => {
            Err(Failure::usage(format!("{kind:?} is not KIND/NAME")).next("write `app/hello`, or `app hello`"))
        }
        (None, name) => Ok((kind.parse()?, name.map(str::to_owned))),
    }
}

/// The kind and the name of one workload.
///
/// # Errors
/// 2 when it is no such kind, or a name is missing.
pub(crate) fn workload(kind: &str, name: Option<&str>) -> Outcome<(Kind, String)> {
    let (kind, name) = target(kind, name)?;
    only_workloads(kind)?;
    let name = name.ok_or_else(|| {
        let (one, many) = (kind.singular(), kind.plural());
        Failure::usage(format!("which {one}?")).next(format!("`caractrl get {many}` lists them"))
    })?;
    Ok((kind, name))
}

/// A kind of workload.
///
/// # Errors
/// 2 when it is none.
pub(crate) fn workload_kind(word: &str) -> Outcome<Kind> {
    let kind = word.parse()?;
    only_workloads(kind)?;
    Ok(kind)
}

fn only_workloads(kind: Kind) -> Outcome {
    if Kind::WORKLOADS.contains(&kind) {
        return Ok(());
    }
    let names = Kind::WORKLOADS.iter().map(|kind| kind.singular()).collect::<Vec<_>>().join(", ");
    Err(Failure::usage(format!("{} is not one of {names}", kind.singular())))
}

/// Adds "did you mean" to a failure that says that `name` does not exist.
pub(crate) async fn with_suggestion(client: &Client, kind: Kind, name: &str, failure: Failure) -> Failure {
    if failure.exit != exit::NOT_FOUND {
        return failure;
    }
    let quick = client.clone().with_limit(SUGGEST_LIMIT);
    let Ok(list) = quick.get::<serde_json::Value>(kind.path()).await else { return failure };
    let names: Vec<String> =
        crate::view::list(&list, "/items").iter().map(|i| crate::view::text(i, "/metadata/name")).collect();
    match closest(name, names.iter().map(String::as_str)) {
        Some(close) => failure.next(format!("did you mean {close:?}?")),
        None if failure.next.is_empty() => {
            failure.next(format!("`caractrl get {}` lists what there is", kind.plural()))
        }
        None => failure,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_cannot_change_the_path() {
        assert_eq!(segment("w1.lan"), "w1.lan");
        assert_eq!(segment("../servers?x"), "..%2Fservers%3Fx");
        assert_eq!(segment(".."), "%2E%2E");
    }

    #[test]
    fn targets_in_both_forms() {
        assert_eq!(target("app/hello", None).expect("valid"), (Kind::App, Some("hello".to_owned())));
        assert_eq!(target("apps", Some("hello")).expect("valid"), (Kind::App, Some("hello".to_owned())));
        assert_eq!(target("no", None).expect("valid"), (Kind::Node, None));
        assert!(target("app/hello", Some("x")).is_err());
        assert!(target("app/", None).is_err());
    }

    #[test]
    fn only_workloads_move() {
        assert_eq!(workload("db/ledger", None), Ok((Kind::Database, "ledger".to_owned())));
        let failure = workload("node", Some("w1")).expect_err("no workload");
        assert_eq!((failure.exit, failure.what.as_str()), (2, "node is not one of app, project, database"));
        assert_eq!(workload("ap", Some("web")).expect_err("no kind").next, "did you mean \"app\"?");
        assert_eq!(workload("app", None).expect_err("no name").what, "which app?");
        assert!(workload_kind("workloads").is_err());
    }
}
