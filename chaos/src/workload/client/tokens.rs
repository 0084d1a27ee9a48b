//! The life of an API token: made once, taken by every server, and by none of them after it was revoked.

use http::StatusCode;
use serde_json::json;

use super::super::rest::{Ask, Rest};
use super::{Client, Settled, address};

impl Client {
    /// Makes a token, uses it, revokes it and tries it everywhere.
    pub(super) async fn api_token(&mut self) {
        self.made += 1;
        let body = json!({ "name": format!("ci-{}-{}", self.name, self.made), "ability": "write" });
        let told = match self.settle(Ask::post("/api/v1/tokens", body)).await {
            Settled::Done(told) => told.json(),
            Settled::Refused(told) => return self.strange("make an API token", &told),
            Settled::Unknown => return,
        };
        let (Some(token), Some(id)) = (told["token"].as_str(), told["id"].as_str()) else { return };
        let Some(founded) = self.shared.founded() else { return };
        let other = Rest::new(&self.env, &founded.ca_fingerprint, token);
        let (server, ask) = (self.server(), Ask::get("/api/v1/nodes"));
        if let Ok(told) = other.ask(&server, &ask, self.patience()).await
            && told.status == StatusCode::UNAUTHORIZED
        {
            self.strange(&format!("a token that was just made, at {server}"), &told);
        }
        match self.settle(Ask::delete(format!("/api/v1/tokens/{id}"))).await {
            Settled::Done(_) => self.opens_nothing(&other).await,
            Settled::Refused(told) => self.strange("revoke an API token", &told),
            Settled::Unknown => {}
        }
    }

    /// Asks every server with a token that is revoked, to see and to change something.
    async fn opens_nothing(&self, other: &Rest) {
        let label = Ask::put(format!("/api/v1/nodes/{}/labels", self.node(self.made)), json!({ "by": "nobody" }));
        for server in &self.servers {
            for ask in [Ask::get("/api/v1/workloads"), label.clone()] {
                let Ok(told) = other.ask(&address(server), &ask, self.patience()).await else { continue };
                // No leader at the moment, or one without room: nothing is told then either.
                let said_no = [StatusCode::UNAUTHORIZED, StatusCode::SERVICE_UNAVAILABLE];
                if !said_no.contains(&told.status) {
                    self.strange(&format!("{} {} at {server} with a revoked token", ask.method, ask.path), &told);
                }
            }
        }
    }
}
