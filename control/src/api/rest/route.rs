//! A route and all that is known of it: who may use it, what goes in, what comes out. One value, three uses: the router,
//! the check of the caller's token, and the OpenAPI document are made from it, so that they can't disagree.

use std::collections::BTreeMap;

use axum::Extension;
use axum::extract::{MatchedPath, Request};
use axum::handler::Handler;
use axum::routing::{MethodFilter, MethodRouter, on};
use cara_core::model::{Ability, WorkloadKind};
use http::Method;
use schemars::{JsonSchema, Schema, SchemaGenerator};

use crate::api::SharedApi;

/// Makes a type's schema; the generator collects the types that it uses.
pub type Shape = fn(&mut SchemaGenerator) -> Schema;

/// What the road asks before a handler runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Rule {
    /// What the caller's token must be able to do; `None` = no token is asked for.
    pub needs: Option<Ability>,
    /// Answered from this server's own state, whoever leads.
    pub local: bool,
    /// Answered from the replicated state alone, so that any server can, once it has caught up with the leader.
    pub replicated: bool,
    /// What a token that is limited to some objects must be for, with the path's parameter in braces: `node:{node}`.
    pub scope: Option<&'static str>,
    /// There is such a route; otherwise who may read is told that there is none.
    pub known: bool,
}

/// A body that is sent.
#[derive(Debug, Clone, Copy)]
pub struct Sent {
    /// Of the JSON.
    pub shape: Shape,
    /// May not be left out.
    pub required: bool,
}

/// What comes back when it went well.
#[derive(Debug, Clone, Copy)]
pub enum Answer {
    /// No body.
    Empty,
    /// Of this shape.
    Json(Shape),
    /// Of this content type.
    Text(&'static str),
}

/// One method of one path.
pub struct Route {
    /// What HTTP calls it.
    pub method: Method,
    /// With parameters in braces.
    pub path: String,
    /// Who may use it.
    pub rule: Rule,
    /// One sentence for the documentation.
    pub summary: &'static str,
    /// The kind that stands in the path, where several kinds share their handlers.
    pub kind: Option<WorkloadKind>,
    /// Parameters after the question mark: an object whose properties they are.
    pub query: Option<Shape>,
    /// The body that it takes.
    pub sent: Option<Sent>,
    /// Takes `If-Match`.
    pub versioned: bool,
    /// Success, by status.
    pub answers: Vec<(u16, Answer)>,
    /// Codes of problems, beside those that every route has.
    pub codes: Vec<&'static str>,
    /// The same, where the status is not the usual one of the code.
    pub codes_as: Vec<(u16, &'static str)>,
    /// What runs.
    pub handler: MethodRouter<SharedApi>,
}

impl Route {
    fn new<H, T>(method: Method, path: &str, handler: H, needs: Option<Ability>, summary: &'static str) -> Self
    where
        H: Handler<T, SharedApi>,
        T: 'static,
    {
        let filter = MethodFilter::try_from(method.clone()).expect("the constructors use methods that axum knows");
        Self {
            method,
            path: path.to_owned(),
            rule: Rule { needs, local: false, replicated: false, scope: None, known: true },
            summary,
            kind: None,
            query: None,
            sent: None,
            versioned: false,
            answers: Vec::new(),
            codes: Vec::new(),
            codes_as: Vec::new(),
            handler: on(filter, handler),
        }
    }

    /// Reads.
    pub fn get<H, T>(path: &str, handler: H, needs: Ability, summary: &'static str) -> Self
    where
        H: Handler<T, SharedApi>,
        T: 'static,
    {
        Self::new(Method::GET, path, handler, Some(needs), summary)
    }

    /// Reads, without a token, from this server: what a load balancer and a client without rights need.
    pub fn open<H, T>(path: &str, handler: H, summary: &'static str) -> Self
    where
        H: Handler<T, SharedApi>,
        T: 'static,
    {
        Self::new(Method::GET, path, handler, None, summary).local()
    }

    /// Creates, or does something.
    pub fn post<H, T>(path: &str, handler: H, needs: Ability, summary: &'static str) -> Self
    where
        H: Handler<T, SharedApi>,
        T: 'static,
    {
        Self::new(Method::POST, path, handler, Some(needs), summary)
    }

    /// Replaces.
    pub fn put<H, T>(path: &str, handler: H, needs: Ability, summary: &'static str) -> Self
    where
        H: Handler<T, SharedApi>,
        T: 'static,
    {
        Self::new(Method::PUT, path, handler, Some(needs), summary)
    }

    /// Removes.
    pub fn delete<H, T>(path: &str, handler: H, needs: Ability, summary: &'static str) -> Self
    where
        H: Handler<T, SharedApi>,
        T: 'static,
    {
        Self::new(Method::DELETE, path, handler, Some(needs), summary)
    }

    /// Answered from this server's own state, whoever leads.
    pub fn local(mut self) -> Self {
        self.rule.local = true;
        self
    }

    /// Answered from the replicated state alone: nothing in it is known to the leader only, such as when a node was last
    /// heard or how far a transfer is.
    pub fn replicated(mut self) -> Self {
        self.rule.replicated = true;
        self
    }

    /// A token that is limited to some objects may use it for these only.
    pub fn scope(mut self, scope: &'static str) -> Self {
        self.rule.scope = Some(scope);
        self
    }

    /// Its handler is told the kind.
    pub fn of(mut self, kind: WorkloadKind) -> Self {
        self.kind = Some(kind);
        self.handler = self.handler.layer(Extension(kind));
        self
    }

    /// Takes the fields of `T` after the question mark.
    pub fn query<T: JsonSchema>(mut self) -> Self {
        self.query = Some(T::json_schema);
        self
    }

    /// Takes a body.
    pub fn takes<T: JsonSchema>(mut self) -> Self {
        self.sent = Some(Sent { shape: named::<T>, required: true });
        self
    }

    /// Takes a body, or none.
    pub fn may_take<T: JsonSchema>(mut self) -> Self {
        self.sent = Some(Sent { shape: named::<T>, required: false });
        self
    }

    /// Carried out only when the object is still at the revision in `If-Match`.
    pub fn versioned(mut self) -> Self {
        self.versioned = true;
        self
    }

    /// Answers with JSON.
    pub fn gives<T: JsonSchema>(mut self, status: u16) -> Self {
        self.answers.push((status, Answer::Json(named::<T>)));
        self
    }

    /// Answers without a body.
    pub fn gives_nothing(mut self, status: u16) -> Self {
        self.answers.push((status, Answer::Empty));
        self
    }

    /// Answers with something that isn't JSON.
    pub fn gives_text(mut self, status: u16, content_type: &'static str) -> Self {
        self.answers.push((status, Answer::Text(content_type)));
        self
    }

    /// Can end with these problems, beside those that every route has.
    pub fn refuses(mut self, codes: &[&'static str]) -> Self {
        self.codes.extend(codes);
        self
    }

    /// The same, with another status than these codes usually have.
    pub fn refuses_as(mut self, status: u16, codes: &[&'static str]) -> Self {
        self.codes_as.extend(codes.iter().map(|code| (status, *code)));
        self
    }

    /// Does it change anything?
    pub fn is_change(&self) -> bool {
        self.method != Method::GET
    }
}

fn named<T: JsonSchema>(generator: &mut SchemaGenerator) -> Schema {
    generator.subschema_for::<T>()
}

/// The rules of all routes, found by what the router has matched.
#[derive(Debug, Clone)]
pub struct Rules(BTreeMap<(String, String), Rule>);

impl Rules {
    /// Of these routes.
    pub fn of(routes: &[Route]) -> Self {
        let key = |route: &Route| (route.path.clone(), route.method.to_string());
        Self(routes.iter().map(|route| (key(route), route.rule)).collect())
    }

    /// What holds for a request that the router has matched. Where there is no such route, who asks must at least be
    /// able to read: strangers learn nothing, not even from what isn't there.
    pub fn for_request(&self, request: &Request) -> Rule {
        let path = request.extensions().get::<MatchedPath>().map(MatchedPath::as_str).unwrap_or_default();
        let unknown = Rule { needs: Some(Ability::Read), local: false, replicated: false, scope: None, known: false };
        self.find(request.method(), path).unwrap_or(unknown)
    }

    fn find(&self, method: &Method, path: &str) -> Option<Rule> {
        // The router answers HEAD with the handler of GET.
        let method = if method == Method::HEAD { &Method::GET } else { method };
        self.0.get(&(path.to_owned(), method.to_string())).copied()
    }
}

#[cfg(test)]
mod tests {
    use super::super::table;
    use super::*;

    #[test]
    fn each_kind_of_route_needs_its_ability() {
        let rules = Rules::of(&table::routes());
        let needs = |method: Method, path| rules.find(&method, path).expect("there is such a route").needs;
        assert_eq!(needs(Method::GET, "/livez"), None);
        assert_eq!(needs(Method::GET, "/api/v1/openapi.json"), None);
        assert_eq!(needs(Method::GET, "/api/v1/nodes"), Some(Ability::Read));
        assert_eq!(needs(Method::HEAD, "/api/v1/nodes"), Some(Ability::Read));
        assert_eq!(needs(Method::POST, "/api/v1/apps"), Some(Ability::Write));
        assert_eq!(needs(Method::POST, "/api/v1/nodes/{node}/cordon"), Some(Ability::Write));
        assert_eq!(needs(Method::GET, "/api/v1/nodes/join-tokens"), Some(Ability::Root));
        assert_eq!(needs(Method::POST, "/api/v1/servers/join-tokens"), Some(Ability::Root));
        assert_eq!(needs(Method::DELETE, "/api/v1/nodes/{node}"), Some(Ability::Root));
        assert_eq!(needs(Method::POST, "/api/v1/apps/{name}/move"), Some(Ability::Write));
        assert_eq!(needs(Method::POST, "/api/v1/nodes/{node}/drain"), Some(Ability::Write));
        assert_eq!(needs(Method::POST, "/api/v1/nodes/{node}/lost"), Some(Ability::Root));
        assert_eq!(needs(Method::DELETE, "/api/v1/nodes/{node}/volumes/{volume}"), Some(Ability::Root));
        assert_eq!(needs(Method::GET, "/api/v1/databases/{name}/connection"), Some(Ability::Root));
        assert_eq!(rules.find(&Method::GET, "/api/v1/apps/{name}/connection"), None, "apps have none");
        assert_eq!(rules.find(&Method::PATCH, "/api/v1/nodes"), None);
    }

    #[test]
    fn nobody_changes_anything_with_a_token_that_only_reads() {
        for route in table::routes().iter().filter(|route| route.is_change()) {
            assert!(route.rule.needs > Some(Ability::Read), "{} {}", route.method, route.path);
        }
    }

    #[test]
    fn what_any_server_answers_is_read_and_nothing_else() {
        let marked: Vec<_> = table::routes().into_iter().filter(|route| route.rule.replicated).collect();
        assert!(marked.iter().all(|route| !route.is_change() && !route.rule.local));
        assert!(marked.iter().any(|route| route.path == "/api/v1/nodes/{node}/labels"));
        assert!(!marked.iter().any(|route| route.path == "/api/v1/nodes"), "the leader alone knows who was heard when");
    }

    #[test]
    fn a_scope_names_a_parameter_of_its_path() {
        for route in table::routes() {
            let Some(scope) = route.rule.scope else { continue };
            let parameter = scope.split_once(':').map(|(_, parameter)| parameter).unwrap_or_default();
            assert!(route.path.contains(parameter), "{} has no {parameter}", route.path);
        }
    }
}
