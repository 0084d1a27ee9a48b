//! `databases`: as other workloads, and where one is reached.

use cara_proto::rest::DatabaseConnection;
use serde_json::{Value, json};

use super::{Context, answer, segment, with_suggestion, workloads};
use crate::cli::DatabasesCommand;
use crate::client::ClientError;
use crate::failure::Outcome;
use crate::kind::Kind;
use crate::out::{Format, clean};

/// Stands where the password is, unless it is asked for.
const HIDDEN: &str = "***";

pub(super) async fn run(cx: &Context, command: Option<DatabasesCommand>) -> Outcome {
    match command {
        None => workloads::run(cx, Kind::Database, None).await,
        Some(DatabasesCommand::Common(command)) => workloads::run(cx, Kind::Database, Some(command)).await,
        Some(DatabasesCommand::Connection { name, show_password }) => connection(cx, &name, show_password).await,
    }
}

async fn connection(cx: &Context, name: &str, show_password: bool) -> Outcome {
    let client = cx.client()?;
    let path = format!("{}/{}/connection", Kind::Database.path(), segment(name));
    let told: DatabaseConnection = match client.get(&path).await {
        Ok(told) => told,
        Err(error) => return Err(with_suggestion(&client, Kind::Database, name, error.into()).await),
    };
    let parts = parts(&told.url).ok_or_else(|| ClientError::Malformed("the URL of the database".to_owned()))?;
    let parts = if show_password { parts } else { Parts { password: HIDDEN, ..parts } };
    let text = parts.text();
    if cx.ui.format == Format::Name {
        cx.ui.data(&clean(&parts.url()));
        return Ok(());
    }
    answer::one(cx, &parts.value(), &parts.url(), &text)
}

/// `scheme://user:password@host:port/rest`. The host of an IPv6 address keeps its brackets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Parts<'a> {
    scheme: &'a str,
    user: &'a str,
    password: &'a str,
    host: &'a str,
    port: u16,
    rest: &'a str,
}

fn parts(url: &str) -> Option<Parts<'_>> {
    let (scheme, rest) = url.split_once("://")?;
    let (who, place) = rest.rsplit_once('@')?;
    let (user, password) = who.split_once(':')?;
    let (place, rest) = place.split_at(place.find('/').unwrap_or(place.len()));
    let (host, port) = place.rsplit_once(':')?;
    Some(Parts { scheme, user, password, host, port: port.parse().ok()?, rest })
}

impl Parts<'_> {
    fn url(&self) -> String {
        let Parts { scheme, user, password, host, port, rest } = self;
        format!("{scheme}://{user}:{password}@{host}:{port}{rest}")
    }

    fn value(&self) -> Value {
        json!({
            "url": self.url(), "host": self.host, "port": self.port, "user": self.user, "password": self.password,
        })
    }

    fn text(&self) -> String {
        let port = self.port.to_string();
        let url = self.url();
        let lines = [("URL", url.as_str()), ("Host", self.host), ("Port", &port), ("User", self.user)];
        let password = [("Password", self.password)].into_iter().filter(|(_, value)| *value != HIDDEN);
        let shown = lines.into_iter().chain(password).filter(|(_, value)| !value.is_empty());
        shown.map(|(label, value)| format!("{:<14}{}\n", format!("{label}:"), clean(value))).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_is_taken_apart_and_put_together_again() {
        let postgres = "postgres://postgres:ab12@10.0.0.4:20001/postgres";
        let found = parts(postgres).expect("a URL");
        assert_eq!((found.user, found.password, found.host, found.port), ("postgres", "ab12", "10.0.0.4", 20_001));
        assert_eq!(found.url(), postgres);
        let redis = parts("redis://:ab12@[fd00::1]:20002").expect("a URL");
        assert_eq!((redis.user, redis.host, redis.port, redis.rest), ("", "[fd00::1]", 20_002, ""));
        assert_eq!(parts("postgres://10.0.0.4"), None);
    }

    #[test]
    fn the_password_is_shown_only_when_it_is_asked_for() {
        let url = "postgres://postgres:ab12@w1:20001/postgres";
        let open = parts(url).expect("a URL");
        let hidden = Parts { password: HIDDEN, ..open };
        assert_eq!(
            hidden.text(),
            "URL:          postgres://postgres:***@w1:20001/postgres\n\
             Host:         w1\nPort:         20001\nUser:         postgres\n"
        );
        assert!(open.text().ends_with("Password:     ab12\n"));
        assert!(!hidden.value().to_string().contains("ab12"));
    }
}
