//! Which cluster is meant, and with which token: flag, then environment, then context file.

use std::path::Path;

use cara_env::Files;

use crate::client::Access;
use crate::config::{self, Config};
use crate::failure::{Failure, Outcome, exit};
use crate::suggest::closest;

/// What the command line says about access. Empty means: not said.
#[derive(Debug, Clone, Default)]
pub struct Wanted {
    /// `--server`, each may hold a comma list.
    pub servers: Vec<String>,
    /// `--token`.
    pub token: Option<String>,
    /// `--ca-fingerprint`.
    pub ca_fingerprint: Option<String>,
    /// `--context`.
    pub context: Option<String>,
}

/// Decides each of servers, token and fingerprint on its own; `var` reads the environment.
///
/// # Errors
/// When a context is named that does not exist, or a token file can't be read.
pub fn resolve(
    wanted: &Wanted,
    var: &dyn Fn(&str) -> Option<String>,
    config: &Config,
    files: &dyn Files,
) -> Outcome<Access> {
    let var = |name: &str| var(name).filter(|value| !value.trim().is_empty());
    let name = wanted.context.clone().or_else(|| var("CARA_CONTEXT")).unwrap_or_else(|| config.current.clone());
    let context = match config.contexts.get(&name) {
        Some(context) => context.clone(),
        None if name.is_empty() => config::Context::default(),
        None => return Err(no_context(&name, config)),
    };
    let servers = match (list(&wanted.servers), var("CARA_SERVERS")) {
        (servers, _) if !servers.is_empty() => servers,
        (_, Some(servers)) => list(&[servers]),
        _ => context.servers,
    };
    let token = match (wanted.token.clone().or_else(|| var("CARA_TOKEN")), var("CARA_TOKEN_FILE")) {
        (Some(token), _) => token.trim().to_owned(),
        (None, Some(path)) => read_token(files, &path)?,
        (None, None) => context.token,
    };
    let ca_fingerprint =
        wanted.ca_fingerprint.clone().or_else(|| var("CARA_CA_FINGERPRINT")).unwrap_or(context.ca_fingerprint);
    Ok(Access { servers, token, ca_fingerprint })
}

/// The context does not exist; says which do.
pub fn no_context(name: &str, config: &Config) -> Failure {
    let names: Vec<&str> = config.contexts.keys().map(String::as_str).collect();
    let next = match closest(name, names.iter().copied()) {
        Some(close) => format!("did you mean {close:?}?"),
        None if names.is_empty() => "make one with `caractrl ctx set NAME --server ... --token ...`".to_owned(),
        None => format!("the contexts are: {}", names.join(", ")),
    };
    Failure::new(exit::NOT_FOUND, "no-context", format!("there is no context {name:?}")).next(next)
}

fn list(values: &[String]) -> Vec<String> {
    let parts = values.iter().flat_map(|value| value.split([',', ' ', '\n']));
    parts.map(str::trim).filter(|part| !part.is_empty()).map(str::to_owned).collect()
}

fn read_token(files: &dyn Files, path: &str) -> Outcome<String> {
    let unreadable = |why: String| {
        Failure::usage(format!("can't read the token from {path}")).why(why).next("check CARA_TOKEN_FILE")
    };
    let bytes = files.read(Path::new(path)).map_err(|e| unreadable(e.to_string()))?;
    let text = String::from_utf8(bytes).map_err(|e| unreadable(e.to_string()))?;
    Ok(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use cara_env::RealFiles;

    use super::*;

    fn config() -> Config {
        let context = |server: &str| config::Context {
            servers: vec![server.to_owned()],
            token: format!("{server}-token"),
            ca_fingerprint: format!("{server}-ca"),
        };
        let contexts = BTreeMap::from([("prod".to_owned(), context("p:1")), ("lab".to_owned(), context("l:1"))]);
        Config { current: "prod".to_owned(), contexts }
    }

    fn check(wanted: &Wanted, vars: &[(&str, &str)], expect: (&str, &str, &str)) {
        let var = |name: &str| vars.iter().find(|(n, _)| *n == name).map(|(_, v)| (*v).to_owned());
        let access = resolve(wanted, &var, &config(), &RealFiles).expect("resolves");
        assert_eq!((access.servers.join(","), access.token, access.ca_fingerprint).into_strs(), expect);
    }

    trait IntoStrs {
        fn into_strs(self) -> (&'static str, &'static str, &'static str);
    }
    impl IntoStrs for (String, String, String) {
        fn into_strs(self) -> (&'static str, &'static str, &'static str) {
            (self.0.leak(), self.1.leak(), self.2.leak())
        }
    }

    #[test]
    fn flag_goes_before_environment_before_context() {
        let none = Wanted::default();
        let flags = Wanted {
            servers: vec!["a:1,b:1".into(), "c:1".into()],
            token: Some("t".into()),
            ca_fingerprint: Some("f".into()),
            context: None,
        };
        let vars = [("CARA_SERVERS", "e:1, f:1"), ("CARA_TOKEN", "et"), ("CARA_CA_FINGERPRINT", "ef")];
        check(&none, &[], ("p:1", "p:1-token", "p:1-ca"));
        check(&none, &vars, ("e:1,f:1", "et", "ef"));
        check(&flags, &vars, ("a:1,b:1,c:1", "t", "f"));
        check(&none, &[("CARA_TOKEN", "et")], ("p:1", "et", "p:1-ca"));
        check(&none, &[("CARA_TOKEN", "")], ("p:1", "p:1-token", "p:1-ca"));
        check(&none, &[("CARA_CONTEXT", "lab")], ("l:1", "l:1-token", "l:1-ca"));
        let named = Wanted { context: Some("prod".into()), ..Wanted::default() };
        check(&named, &[("CARA_CONTEXT", "lab")], ("p:1", "p:1-token", "p:1-ca"));
    }

    #[test]
    fn a_token_file_is_trimmed_and_a_missing_one_is_named() {
        let folder = tempfile::tempdir().expect("temporary folder");
        let path = folder.path().join("token");
        std::fs::write(&path, "secret\n").expect("written");
        let path = path.to_str().expect("utf-8").to_owned();
        check(&Wanted::default(), &[("CARA_TOKEN_FILE", &path)], ("p:1", "secret", "p:1-ca"));
        let var = |name: &str| (name == "CARA_TOKEN_FILE").then(|| "/nowhere/token".to_owned());
        let failure = resolve(&Wanted::default(), &var, &config(), &RealFiles).expect_err("no such file");
        assert!(failure.what.contains("/nowhere/token"), "{failure}");
    }

    #[test]
    fn an_unknown_context_names_the_nearest() {
        let wanted = Wanted { context: Some("prd".into()), ..Wanted::default() };
        let failure = resolve(&wanted, &|_| None, &config(), &RealFiles).expect_err("unknown");
        assert_eq!(failure.next, "did you mean \"prod\"?");
    }
}
