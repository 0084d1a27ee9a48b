//! API tokens: make one, list, take one back, and make one without having any (recovery).

use cara_core::command::{PutApiToken, RevokeApiToken};
use cara_core::model::{Ability, ApiToken, Scope};
use cara_core::{Answer, Command, Feature, Rejected, ServerId, State, TokenId};
use cara_proto::rest::{ApiTokenRequest, ApiTokenView};
use cara_transport::JoinToken;
use http::StatusCode;

use super::actor::Who;
use super::rest::Asker;
use super::secret::shown_before;
use super::{Api, SharedApi, find};
use crate::error::ApiError;
use crate::wire::{parse_time, rfc3339};

/// A token with a shorter life is over before it is copied.
const TTL_MIN_S: u64 = 60;
/// Ten years: longer is for ever, which is said by leaving it out.
const TTL_MAX_S: u64 = 10 * 366 * 24 * 60 * 60;

/// A token that was made, and its text, which is shown this once.
pub struct Made {
    /// What is kept of it.
    pub view: ApiTokenView,
    /// What goes into the Authorization header.
    pub text: String,
}

impl Api {
    /// Makes a token. The same request under the same id shows the same token again.
    ///
    /// # Errors
    /// 400 for what makes no sense, 403 for more than the caller's token has, 404 for a scope on a node that isn't there.
    pub async fn create_token(&self, asker: &Asker, request: ApiTokenRequest) -> Result<Made, ApiError> {
        let now = self.env.clock.wall_ms();
        let ability = ability(&request.ability)?;
        let expires_at_ms = end(&request, now)?;
        let scopes = self.read_local(|state| scopes(state, &request.scopes))?;
        let token = ApiToken { name: request.name, ability, scopes, expires_at_ms, ..ApiToken::default() };
        self.record_token((&asker.actor).into(), &asker.request_id, token).await
    }

    /// Makes a root token for a server's own operator, who has none left. Only the leader can.
    ///
    /// # Errors
    /// 403 when that server isn't a member any more.
    pub async fn recover_token(&self, server: u64, request_id: &str) -> Result<Made, ApiError> {
        self.barrier().await?;
        let name = self.read_local(|state| state.server(ServerId(server)).map(|server| server.name.clone()));
        let name = name.ok_or_else(|| ApiError::Bad {
            status: StatusCode::FORBIDDEN,
            code: "server-removed",
            detail: format!("server {server} is not a member of the cluster any more"),
            hint: "run it on a machine whose server is a member",
        })?;
        let token = ApiToken { name: format!("recovered on {name}"), ability: Ability::Root, ..ApiToken::default() };
        let made = self.record_token(Who::from(&format!("server:{server}")), request_id, token).await?;
        tracing::warn!(server = %name, token = %made.view.id, "a root token was recovered");
        Ok(made)
    }

    async fn record_token(&self, who: Who<'_>, request_id: &str, token: ApiToken) -> Result<Made, ApiError> {
        let text = format!("cara_{}", self.secret_for(who.name, request_id, "api-token")?);
        let hash = JoinToken::hash(&text);
        let id = TokenId::new(format!("tk-{}", &JoinToken::hash(&format!("id of {text}"))[..12]));
        // An older server would not know who made it.
        let says_more = self.read_local(|state| state.supports(Feature::Lifecycle));
        let created_by = if says_more { who.name.to_owned() } else { String::new() };
        let command = PutApiToken { token: ApiToken { id, hash: hash.clone(), created_by, ..token } };
        let reply = self.propose(who, request_id, Command::PutApiToken(command)).await?;
        let Answer::Token(answer) = reply.answer else {
            return Err(ApiError::Internal("the answer to PutApiToken names no token".into()));
        };
        self.read_local(|state| {
            let made = state.api_token(&answer.token).ok_or_else(|| unknown(answer.token.as_str()))?;
            if made.hash != hash {
                return Err(shown_before(made.id.as_str()));
            }
            Ok(Made { view: self.token_view(made), text })
        })
    }

    /// All tokens, revoked and expired ones included, by name.
    pub fn list_tokens(&self) -> (u64, Vec<ApiTokenView>) {
        self.read_local(|state| {
            let mut views: Vec<_> = state.api_tokens().map(|token| self.token_view(token)).collect();
            views.sort_by(|a, b| (&a.name, &a.id).cmp(&(&b.name, &b.id)));
            (state.revision().0, views)
        })
    }

    /// One token, by id.
    ///
    /// # Errors
    /// 404 when there is none.
    pub fn show_token(&self, id: &str) -> Result<(u64, ApiTokenView), ApiError> {
        self.read_local(|state| {
            let token = state.api_token(&TokenId::from(id)).ok_or_else(|| unknown(id))?;
            Ok((token.revision.0, self.token_view(token)))
        })
    }

    /// Takes a token back: it is refused from now on, its streams end, its record stays. With `forget` the record of one
    /// that has ended goes too.
    ///
    /// # Errors
    /// 404 when there is none, 409 for the last root token that does not expire.
    pub async fn revoke_token(&self, asker: &Asker, id: &str, forget: bool) -> Result<(), ApiError> {
        let command = Command::RevokeApiToken(RevokeApiToken { id: TokenId::from(id), forget });
        self.propose(&asker.actor, &asker.request_id, command).await.map(drop)
    }

    /// May this token be used now, as far as this server knows?
    pub fn is_token_valid(&self, id: &TokenId) -> bool {
        let now = self.env.clock.wall_ms();
        self.read_local(|state| state.api_token(id).is_some_and(|token| token.is_valid(now)))
    }

    fn token_view(&self, token: &ApiToken) -> ApiTokenView {
        let now = self.env.clock.wall_ms();
        let last_used = token.last_used_ms.max(self.token_uses.last(&token.id));
        ApiTokenView {
            id: token.id.to_string(),
            name: token.name.clone(),
            ability: token.ability.as_str().into(),
            scopes: token.scopes().iter().map(Scope::to_string).collect(),
            state: match token.revoked_at_ms {
                Some(_) => "revoked",
                None if token.is_valid(now) => "active",
                None => "expired",
            }
            .into(),
            created_at: rfc3339(token.created_at_ms),
            created_by: token.created_by.clone(),
            expires_at: token.expires_at_ms.map(rfc3339),
            last_used_at: (last_used > 0).then(|| rfc3339(last_used)),
            revoked_at: token.revoked_at_ms.map(rfc3339),
        }
    }
}

/// Comes back once the token is revoked, or has expired.
pub async fn token_ended(api: SharedApi, id: TokenId) {
    let mut changed = api.administration.clone();
    loop {
        changed.borrow_and_update();
        if !api.is_token_valid(&id) {
            return;
        }
        let now = api.env.clock.wall_ms();
        let end = api.read_local(|state| state.api_token(&id).and_then(|token| token.expires_at_ms));
        let left = std::time::Duration::from_millis(end.map_or(u64::MAX, |end| end.saturating_sub(now)));
        let again = tokio::select! {
            biased;
            changed = changed.changed() => changed.is_ok(),
            () = api.env.clock.sleep(left.min(TOKEN_LOOK_MAX)) => true,
        };
        if !again {
            return;
        }
    }
}

/// A stream looks at its token at least this often: clocks step.
const TOKEN_LOOK_MAX: std::time::Duration = std::time::Duration::from_secs(60);

fn unknown(id: &str) -> ApiError {
    Rejected::UnknownToken { token: id.to_owned() }.into()
}

fn ability(word: &str) -> Result<Ability, ApiError> {
    Ability::parse(word).ok_or_else(|| ApiError::invalid(format!("ability: is {word:?}, must be read, write or root")))
}

fn end(request: &ApiTokenRequest, now_ms: u64) -> Result<Option<u64>, ApiError> {
    match (request.ttl_seconds, &request.expires_at) {
        (None, None) => Ok(None),
        (Some(_), Some(_)) => Err(ApiError::invalid("ttlSeconds: and expiresAt say the same; give one of them")),
        (Some(ttl), None) if (TTL_MIN_S..=TTL_MAX_S).contains(&ttl) => Ok(Some(now_ms.saturating_add(ttl * 1000))),
        (Some(ttl), None) => {
            Err(ApiError::invalid(format!("ttlSeconds: is {ttl}, must be {TTL_MIN_S} to {TTL_MAX_S}")))
        }
        (None, Some(text)) => match parse_time(text) {
            Some(end) if end > now_ms => Ok(Some(end)),
            Some(_) => Err(ApiError::invalid(format!("expiresAt: {text} has passed"))),
            None => Err(ApiError::invalid(format!("expiresAt: {text:?} is not a time like 2030-01-31T12:00:00Z"))),
        },
    }
}

/// Scopes as they are kept: a node that is named is meant by its id, so that another one of its name is not.
fn scopes(state: &State, texts: &[String]) -> Result<Vec<String>, ApiError> {
    let mut scopes = Vec::new();
    for (at, text) in texts.iter().enumerate() {
        let scope = match text.strip_prefix("node:") {
            Some(name) => Scope::Node(find::node(state, name)?.id.clone()),
            None => Scope::parse(&format!("scopes[{at}]"), text).map_err(Rejected::from)?,
        };
        let text = scope.to_string();
        if !scopes.contains(&text) {
            scopes.push(text);
        }
    }
    Ok(scopes)
}
