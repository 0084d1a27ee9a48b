//! A server on a free port, and a client that speaks HTTP to it.

use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use cara_control::setup::{self, Founded, Place, SetupError};
use cara_control::{Config, RunError};
use cara_core::FEATURE_LEVEL;
use cara_env::{Engine, Env};
use http_body_util::{BodyExt, Full};
use hyper::body::Bytes;
use hyper_util::rt::TokioIo;
use raft_store::memory::MemoryEngine;
use serde_json::Value;
use tokio::sync::watch;

use crate::contract;

/// Long enough for a loaded machine; a run that needs it all is broken.
pub const DEADLINE: Duration = Duration::from_secs(30);

/// A running server.
pub struct Server {
    pub env: Env,
    pub founded: Founded,
    pub address: String,
    /// Its `server.json` as it was before the first run.
    pub identity: Value,
    engine: Arc<dyn Engine>,
    stop: watch::Sender<bool>,
    task: Option<cara_env::Task<Result<(), RunError>>>,
    folder: tempfile::TempDir,
    change: Change,
}

/// What a test wants otherwise than usual.
type Change = Arc<dyn Fn(&mut Config) + Send + Sync>;

/// An answer.
#[derive(Debug)]
pub struct Answer {
    pub status: u16,
    pub headers: http::HeaderMap,
    pub body: String,
}

impl Answer {
    pub fn json(&self) -> Value {
        serde_json::from_str(&self.body).unwrap_or_else(|error| panic!("{error}: {}", self.body))
    }

    /// The `code` of a problem.
    pub fn code(&self) -> String {
        self.json()["code"].as_str().unwrap_or_default().to_owned()
    }
}

/// A free port of this machine, at the moment of asking.
pub async fn free_address(env: &Env) -> String {
    env.net.listen("127.0.0.1:0").await.unwrap().local_address()
}

pub fn config(folder: &Path) -> Config {
    Config {
        raft_heartbeat: Duration::from_millis(20),
        election_timeout: Duration::from_millis(150),
        agent_heartbeat: Duration::from_millis(500),
        agent_timeout_intervals: 60, // No test waits for silence, and a loaded machine is no dead node.
        body_max: 64 * 1024,
        ..Config::new(folder)
    }
}

impl Server {
    /// Makes a cluster of one and waits until it leads.
    pub async fn start() -> Self {
        Self::start_at(FEATURE_LEVEL).await
    }

    /// The same with a server of the release that had this feature level.
    pub async fn start_at(level: u32) -> Self {
        Self::start_as(level, |_| {}).await
    }

    /// The same with other settings.
    pub async fn start_with(change: impl Fn(&mut Config) + Send + Sync + 'static) -> Self {
        Self::start_as(FEATURE_LEVEL, change).await
    }

    async fn start_as(level: u32, change: impl Fn(&mut Config) + Send + Sync + 'static) -> Self {
        let env = Env::real();
        let folder = tempfile::tempdir().unwrap();
        let address = free_address(&env).await;
        let place = Place { feature_level_max: level, ..Place::new("s1", &address, &address) };
        let founded = setup::init(&env, folder.path(), &place).unwrap();
        let server = Self::run(env, founded, address, folder, (level, Arc::new(change)));
        server.wait_ready().await;
        server
    }

    fn run(
        env: Env,
        founded: Founded,
        address: String,
        folder: tempfile::TempDir,
        (level, change): (u32, Change),
    ) -> Self {
        let engine: Arc<dyn Engine> = Arc::new(MemoryEngine::new());
        let (stop, _) = watch::channel(false);
        let identity = std::fs::read(folder.path().join("server.json")).unwrap();
        let identity = serde_json::from_slice(&identity).unwrap();
        let mut server = Self { env, founded, address, identity, engine, stop, task: None, folder, change };
        server.run_at(level);
        server
    }

    fn run_at(&mut self, level: u32) {
        let (stop, stopped) = watch::channel(false);
        self.stop = stop;
        let mut config = Config { feature_level_max: level, ..config(self.folder.path()) };
        (self.change)(&mut config);
        self.task = Some(cara_env::spawn(cara_control::run(config, self.env.clone(), self.engine.clone(), stopped)));
    }

    /// Stops it, and runs it again over what it has as the release that had this feature level.
    pub async fn restart_at(&mut self, level: u32) {
        self.end().await;
        self.run_at(level);
        self.wait_ready().await;
    }

    /// The same with a release that can't run here: why.
    pub async fn refuses_at(&mut self, level: u32) -> RunError {
        self.end().await;
        self.run_at(level);
        let task = self.task.take().unwrap();
        cara_env::timeout(&*self.env.clock, DEADLINE, task).await.expect("it ends by itself").unwrap().unwrap_err()
    }

    /// Another server joins this one's cluster, as the release that had this feature level, and gets a vote.
    pub async fn join(&self, name: &str, level: u32) -> Result<Self, SetupError> {
        let minted = self.post("/api/v1/servers/join-tokens", &serde_json::json!({})).await.json();
        self.join_with(name, level, minted["token"].as_str().unwrap()).await
    }

    /// The same with a token that was made before.
    pub async fn join_with(&self, name: &str, level: u32, token: &str) -> Result<Self, SetupError> {
        let token = token.parse().unwrap();
        let folder = tempfile::tempdir().unwrap();
        let address = free_address(&self.env).await;
        let place = Place { feature_level_max: level, ..Place::new(name, &address, &address) };
        setup::join(&self.env, folder.path(), &place, &token).await?;
        let joined =
            Self::run(self.env.clone(), self.founded.clone(), address, folder, (level, Arc::new(|_: &mut Config| {})));
        let votes = |view: &Value| {
            view["servers"].as_array().unwrap().iter().any(|server| server["name"] == name && server["voter"] == true)
        };
        self.until("/api/v1/servers", votes).await;
        joined.wait_ready().await;
        Ok(joined)
    }

    async fn end(&mut self) {
        self.stop.send_replace(true);
        if let Some(task) = self.task.take() {
            task.await.unwrap().unwrap();
        }
    }

    async fn wait_ready(&self) {
        let ready = async {
            // Ready, and the first entry is in: the root token works.
            while !matches!(self.try_get("/api/v1/nodes").await, Some(answer) if answer.status == 200) {
                self.env.clock.sleep(Duration::from_millis(20)).await;
            }
        };
        cara_env::timeout(&*self.env.clock, DEADLINE, ready).await.expect("the server leads within the deadline");
    }

    pub async fn stop(mut self) {
        self.end().await;
    }

    async fn try_get(&self, path: &str) -> Option<Answer> {
        self.send("GET", path, &[("authorization", self.bearer())], Bytes::new()).await.ok()
    }

    /// Where its identity is.
    pub fn data_dir(&self) -> &Path {
        self.folder.path()
    }

    /// With another token than the root token.
    pub async fn as_token(&self, token: &str, method: &str, path: &str, body: &Value) -> Answer {
        let body = if body.is_null() { String::new() } else { body.to_string() };
        self.send(method, path, &[("authorization", format!("Bearer {token}"))], Bytes::from(body)).await.unwrap()
    }

    /// Makes an API token; its text and its id.
    pub async fn token(&self, body: &Value) -> (String, String) {
        let made = self.post("/api/v1/tokens", body).await;
        assert_eq!(made.status, 201, "{}", made.body);
        let text = |key: &str| made.json()[key].as_str().unwrap().to_owned();
        (text("token"), text("id"))
    }

    pub fn bearer(&self) -> String {
        format!("Bearer {}", self.founded.token)
    }

    pub async fn get(&self, path: &str) -> Answer {
        self.call("GET", path, &[], "").await
    }

    pub async fn post(&self, path: &str, body: &Value) -> Answer {
        self.call("POST", path, &[], &body.to_string()).await
    }

    pub async fn put(&self, path: &str, body: &Value) -> Answer {
        self.call("PUT", path, &[], &body.to_string()).await
    }

    pub async fn delete(&self, path: &str) -> Answer {
        self.call("DELETE", path, &[], "").await
    }

    /// With the root token and more headers.
    pub async fn call(&self, method: &str, path: &str, headers: &[(&str, &str)], body: &str) -> Answer {
        let mut all = vec![("authorization", self.bearer())];
        all.extend(headers.iter().map(|(name, value)| (*name, (*value).to_owned())));
        self.send(method, path, &all, Bytes::from(body.to_owned())).await.unwrap()
    }

    pub async fn send(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Result<Answer, String> {
        let response = self.open(method, path, headers, body).await?;
        let (head, body) = response.into_parts();
        let body = cara_env::timeout(&*self.env.clock, DEADLINE, body.collect()).await.map_err(|e| e.to_string())?;
        let body = body.map_err(|e| e.to_string())?.to_bytes();
        let body = String::from_utf8_lossy(&body).into_owned();
        let answer = Answer { status: head.status.as_u16(), headers: head.headers, body };
        contract::check(method, path, &answer);
        Ok(answer)
    }

    /// The response with its body still to come.
    pub async fn open(
        &self,
        method: &str,
        path: &str,
        headers: &[(&str, String)],
        body: Bytes,
    ) -> Result<hyper::Response<hyper::body::Incoming>, String> {
        let tls = cara_transport::pinned(&self.env, &self.founded.ca_fingerprint, false);
        let stream =
            cara_transport::connect_stream(&self.env, &self.address, tls, DEADLINE).await.map_err(|e| e.to_string())?;
        let (mut sender, connection) =
            hyper::client::conn::http1::handshake(TokioIo::new(stream)).await.map_err(|e| e.to_string())?;
        drop(cara_env::spawn(connection));
        let mut request = hyper::Request::builder().method(method).uri(path).header("host", "server");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let request = request.body(Full::new(body)).unwrap();
        let answer = cara_env::timeout(&*self.env.clock, DEADLINE, sender.send_request(request)).await;
        answer.map_err(|e| e.to_string())?.map_err(|e| e.to_string())
    }
}

impl Server {
    /// Asks for `path` until the answer fits, and returns it.
    pub async fn until(&self, path: &str, fits: impl Fn(&Value) -> bool) -> Value {
        let mut last = Value::Null;
        let work = async {
            loop {
                // While a leader is elected there is none to ask.
                if let Some(answer) = self.try_get(path).await.filter(|answer| answer.status != 503) {
                    last = answer.json();
                    if fits(&last) {
                        return;
                    }
                }
                self.env.clock.sleep(Duration::from_millis(20)).await;
            }
        };
        let waited = cara_env::timeout(&*self.env.clock, DEADLINE, work).await;
        assert!(waited.is_ok(), "{path} never became what was waited for: {last:#}");
        last
    }
}

/// The manifest of an app.
pub fn app(name: &str) -> Value {
    serde_json::json!({
        "apiVersion": "caravanserai/v1",
        "kind": "App",
        "metadata": { "name": name },
        "spec": { "image": "busybox:1", "env": [{ "name": "A", "value": "1" }] },
    })
}
