//! `tokens`: API tokens.

use cara_proto::rest::{ApiTokenRequest, ApiTokenView, List, MintedApiToken};
use clap::ValueEnum;

use super::{Context, answer, get, segment};
use crate::cli::TokensCommand;
use crate::client::Client;
use crate::failure::{Failure, Outcome, exit};
use crate::kind::Kind;
use crate::out::{Format, clean};
use crate::suggest::closest;

pub(super) async fn run(cx: &Context, command: Option<TokensCommand>) -> Outcome {
    let client = cx.client()?;
    match command.unwrap_or(TokensCommand::List) {
        TokensCommand::List => get::list(cx, &client, Kind::ApiToken).await,
        TokensCommand::Create { name, ability, scope, ttl } => {
            let ability = ability.to_possible_value().map(|value| value.get_name().to_owned()).unwrap_or_default();
            let ttl_seconds = ttl.map(|ttl| ttl.as_secs());
            create(cx, &client, ApiTokenRequest { name, ability, scopes: scope, ttl_seconds, expires_at: None }).await
        }
        TokensCommand::Revoke { which, forget } => revoke(cx, &client, &which, forget).await,
    }
}

/// The token alone goes to stdout, so that a script can keep it; what to know about it goes to stderr.
async fn create(cx: &Context, client: &Client, request: ApiTokenRequest) -> Outcome {
    let value: serde_json::Value = client.post("/tokens", &request).await?.json()?;
    let made: MintedApiToken = answer::typed(&value)?;
    if matches!(cx.ui.format, Format::Json | Format::Yaml) {
        return cx.ui.value(&value);
    }
    let reach = match made.info.scopes.as_slice() {
        [] => "everything".to_owned(),
        scopes => scopes.join(", "),
    };
    let end = made.info.expires_at.as_deref().map_or("until it is revoked".to_owned(), |end| format!("until {end}"));
    let ApiTokenView { id, name, ability, .. } = &made.info;
    cx.ui.note(&clean(&format!("Token {id} ({name}), {ability} on {reach}, valid {end}. It is shown this once:")));
    cx.ui.data(&made.token);
    Ok(())
}

async fn revoke(cx: &Context, client: &Client, wanted: &str, forget: bool) -> Outcome {
    let tokens: List<ApiTokenView> = client.get("/tokens").await?;
    let token = find(&tokens.items, wanted, forget)?;
    let query = if forget { "?forget=true" } else { "" };
    client.delete(&format!("/tokens/{}{query}", segment(&token.id))).await?;
    let done = if forget && token.state != "active" { "forgotten" } else { "revoked" };
    cx.ui.data(&clean(&format!("api-token/{} ({}) {done}", token.id, token.name)));
    Ok(())
}

/// By id, or by a name that only one has; a name means the one that is valid, if one is.
fn find<'a>(tokens: &'a [ApiTokenView], wanted: &str, forget: bool) -> Outcome<&'a ApiTokenView> {
    if let Some(token) = tokens.iter().find(|token| token.id == wanted) {
        return Ok(token);
    }
    let named: Vec<_> = tokens.iter().filter(|token| token.name == wanted).collect();
    let meant: Vec<_> = named.iter().copied().filter(|token| (token.state == "active") != forget).collect();
    match (meant.as_slice(), named.as_slice()) {
        ([one], _) | ([], [one]) => Ok(one),
        ([], []) => {
            let known = tokens.iter().flat_map(|token| [token.id.as_str(), token.name.as_str()]);
            let next = match closest(wanted, known) {
                Some(close) => format!("did you mean {:?}?", clean(close)),
                None => "`caractrl tokens list` shows them".to_owned(),
            };
            Err(Failure::new(exit::NOT_FOUND, "not-found", format!("there is no API token {wanted:?}")).next(next))
        }
        _ => {
            let ids: Vec<_> = named.iter().map(|token| token.id.as_str()).collect();
            let what = format!("{} API tokens are called {wanted:?}", named.len());
            Err(Failure::usage(what).next(format!("say which by its id: {}", ids.join(", "))))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn token(id: &str, name: &str, state: &str) -> ApiTokenView {
        ApiTokenView { id: id.into(), name: name.into(), state: state.into(), ..ApiTokenView::default() }
    }

    #[test]
    fn a_name_means_the_token_that_is_valid() {
        let tokens = [token("tk-1", "ci", "revoked"), token("tk-2", "ci", "active"), token("tk-3", "bob", "expired")];
        assert_eq!(find(&tokens, "ci", false).map(|t| t.id.as_str()), Ok("tk-2"));
        assert_eq!(find(&tokens, "ci", true).map(|t| t.id.as_str()), Ok("tk-1"));
        assert_eq!(find(&tokens, "tk-1", false).map(|t| t.id.as_str()), Ok("tk-1"));
        assert_eq!(find(&tokens, "bob", false).map(|t| t.id.as_str()), Ok("tk-3"));
        assert_eq!(find(&tokens, "bop", false).map_err(|f| (f.exit, f.next)), Err((3, "did you mean \"bob\"?".into())));
        let two = [token("tk-1", "ci", "active"), token("tk-2", "ci", "active")];
        let failure = find(&two, "ci", false).expect_err("which?");
        assert_eq!((failure.exit, failure.next.as_str()), (2, "say which by its id: tk-1, tk-2"));
    }
}
