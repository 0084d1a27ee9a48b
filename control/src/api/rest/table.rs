//! All routes of the API. To add one, add its row here: the router, the check of tokens and the OpenAPI document follow.
//!
//! A row says: path, handler, who may, what it is for; then what goes in (`query`, `takes`), what comes out (`gives`), and the
//! codes of its own problems (`refuses`). What every route can end with is in `openapi`.

use std::collections::BTreeMap;

use cara_core::model::Ability::{Read, Root, Write};
use cara_core::model::WorkloadKind;
use cara_proto::rest::{
    Accepts, ApiTokenRequest, ApiTokenView, AppMoveView, AuditPage, CaRotateRequest, CaView, ClusterView,
    ConnectionEvent, DatabaseConnection, DrainPlan, DrainView, Items, JoinTokenRequest, JoinTokenView, List,
    LostRequest, LostView, MintedApiToken, MintedToken, MovePlan, MoveRequest, MoveView, NodeChoice, NodeHealth,
    NodeManifest, NodeRegion, NodeVolume, PlacementReport, PlacementRequest, ReenrollToken, SealingKeyRotateRequest,
    SealingKeyView, WorkloadManifest,
};

use super::route::Route;
use super::{
    api_tokens, app_moves, audit, ca, drains, health, identity, lifecycle, logs, lost, moves, node_health, nodes,
    openapi, placement, sealing, servers, tokens, volumes, watch, workloads,
};
use crate::wire::kind_path;

/// Every route of a server's REST API.
pub fn routes() -> Vec<Route> {
    let mut v1 = openapi::routes();
    v1.extend(node_routes());
    v1.extend(node_work_routes());
    v1.extend(server_routes());
    v1.extend(access_routes());
    v1.extend(move_routes());
    v1.push(
        Route::get("/workloads", workloads::list_all, Read, "All workloads of all kinds.")
            .replicated()
            .query::<workloads::ListQuery>()
            .gives::<List<WorkloadManifest>>(200),
    );
    for kind in [WorkloadKind::App, WorkloadKind::Database, WorkloadKind::Project] {
        v1.extend(workload_routes(kind));
        v1.extend(run_routes(kind));
    }
    v1.extend(app_routes());
    v1.extend(database_routes());
    v1.iter_mut().for_each(|route| route.path.insert_str(0, "/api/v1"));
    v1.extend(probe_routes());
    v1
}

fn probe_routes() -> Vec<Route> {
    const TEXT: &str = "text/plain; charset=utf-8";
    vec![
        Route::open("/livez", health::livez, "The process answers.").gives_text(200, TEXT),
        Route::open("/readyz", health::readyz, "This server leads, or knows who does.")
            .gives_text(200, TEXT)
            .gives_text(503, TEXT),
        Route::open("/api/healthz", health::healthz, "The process answers; the older name of /livez.")
            .gives_text(200, TEXT),
        Route::get("/metrics", health::metrics, Read, "What this server has counted, for Prometheus.")
            .local()
            .gives_text(200, health::METRICS_TYPE),
    ]
}

fn node_routes() -> Vec<Route> {
    vec![
        Route::get("/nodes", nodes::list, Read, "All nodes, by name.")
            .query::<nodes::ListQuery>()
            .gives::<List<NodeManifest>>(200),
        Route::post("/nodes", nodes::create, Write, "Describes a node before its machine arrives.")
            .takes::<NodeManifest>()
            .gives::<NodeManifest>(201)
            .refuses(&["node-name-taken", "node-id-taken"]),
        Route::get("/nodes/join-tokens", tokens::list_for_nodes, Root, "Join tokens for nodes, without their secrets.")
            .gives::<List<JoinTokenView>>(200),
        Route::post("/nodes/join-tokens", tokens::mint_for_node, Root, "Mints a token that lets one machine in.")
            .may_take::<JoinTokenRequest>()
            .gives::<MintedToken>(201)
            .refuses(&["token-exists", "token-shown-before"]),
        Route::delete("/nodes/join-tokens/{id}", tokens::revoke, Root, "Takes a join token back.")
            .gives_nothing(204)
            .refuses(&["unknown-token", "join-token-used"]),
        Route::get("/nodes/{node}", nodes::show, Read, "One node, by name or id.")
            .scope("node:{node}")
            .gives::<NodeManifest>(200)
            .refuses(&["unknown-node"]),
        Route::put("/nodes/{node}", nodes::replace, Write, "Replaces labels, annotations and spec.")
            .scope("node:{node}")
            .takes::<NodeManifest>()
            .versioned()
            .gives::<NodeManifest>(200)
            .refuses(&["unknown-node"]),
        Route::delete("/nodes/{node}", nodes::delete, Root, "Removes a node on which nothing is placed.")
            .scope("node:{node}")
            .gives_nothing(204)
            .refuses(&["unknown-node", "node-not-empty", "node-in-move", "drain-running"]),
        Route::get("/nodes/{node}/labels", nodes::labels, Read, "The node's labels.")
            .replicated()
            .scope("node:{node}")
            .gives::<BTreeMap<String, String>>(200)
            .refuses(&["unknown-node"]),
        Route::put("/nodes/{node}/labels", nodes::set_labels, Write, "Replaces all labels.")
            .scope("node:{node}")
            .takes::<BTreeMap<String, String>>()
            .versioned()
            .gives::<NodeManifest>(200)
            .refuses(&["unknown-node"]),
        Route::put("/nodes/{node}/workloads", nodes::set_accepts, Write, "Sets which kinds the node takes.")
            .scope("node:{node}")
            .takes::<Accepts>()
            .gives::<NodeManifest>(200)
            .refuses(&["unknown-node"]),
        Route::get("/nodes/{node}/events", nodes::events, Read, "Changes of the node's connection, newest first.")
            .replicated()
            .scope("node:{node}")
            .query::<nodes::EventsQuery>()
            .gives::<List<ConnectionEvent>>(200)
            .refuses(&["unknown-node"]),
        Route::get("/nodes/{node}/health", node_health::show, Read, "The node's conditions, and if it has ever come.")
            .scope("node:{node}")
            .gives::<NodeHealth>(200)
            .refuses(&["unknown-node"]),
        Route::put("/nodes/{node}/region", node_health::set_region, Write, "Says where the node stands.")
            .scope("node:{node}")
            .takes::<NodeRegion>()
            .gives::<NodeManifest>(200)
            .refuses(&["unknown-node"]),
    ]
}

fn node_work_routes() -> Vec<Route> {
    vec![
        Route::post("/nodes/{node}/cordon", nodes::cordon, Write, "No new placements.")
            .scope("node:{node}")
            .gives::<NodeManifest>(200)
            .refuses(&["unknown-node"]),
        Route::post("/nodes/{node}/uncordon", nodes::uncordon, Write, "Placements again; ends a drain.")
            .scope("node:{node}")
            .gives::<NodeManifest>(200)
            .refuses(&["unknown-node", "drain-waits"]),
        Route::post(
            "/nodes/{node}/drain",
            drains::start,
            Write,
            "Begins to empty a node, or says what that would move.",
        )
        .scope("node:{node}")
        .query::<drains::DrainQuery>()
        .gives::<DrainPlan>(200)
        .gives::<DrainView>(202)
        .refuses(&["unknown-node", "drain-running", "drain-exists", "node-not-eligible"]),
        Route::get("/nodes/{node}/drains", drains::list, Read, "The drains of a node, newest first.")
            .replicated()
            .scope("node:{node}")
            .gives::<Items<DrainView>>(200)
            .refuses(&["unknown-node"]),
        Route::get("/node-drains/{id}", drains::show, Read, "One drain.")
            .replicated()
            .gives::<DrainView>(200)
            .refuses(&["unknown-drain"]),
        Route::post("/node-drains/{id}/cancel", drains::cancel, Write, "Ends a drain; the node stays cordoned.")
            .gives::<DrainView>(202)
            .refuses(&["unknown-drain", "drain-over"]),
        Route::post(
            "/nodes/{node}/reenroll-token",
            identity::reenroll_token,
            Root,
            "Makes the token with which this node, and no other, comes back.",
        )
        .scope("node:{node}")
        .gives::<ReenrollToken>(201)
        .refuses(&["unknown-node", "node-not-enrolled", "token-exists", "token-shown-before"]),
        Route::post(
            "/nodes/{node}/revoke-cert",
            identity::revoke_cert,
            Root,
            "Shuts a node out until it is enrolled again.",
        )
        .scope("node:{node}")
        .gives::<NodeManifest>(200)
        .refuses(&["unknown-node", "node-not-enrolled"]),
        Route::post("/nodes/{node}/lost", lost::declare, Root, "Gives a node up, or says what that would cost.")
            .scope("node:{node}")
            .may_take::<LostRequest>()
            .gives::<LostView>(200)
            .refuses(&["unknown-node", "node-online", "confirmation-needed"]),
        Route::get("/nodes/{node}/volumes", volumes::list, Read, "Volumes that are kept until somebody decides.")
            .scope("node:{node}")
            .gives::<Items<NodeVolume>>(200)
            .refuses(&["unknown-node"]),
        Route::delete("/nodes/{node}/volumes/{volume}", volumes::remove, Root, "Has one of them removed.")
            .scope("node:{node}")
            .gives::<NodeVolume>(202)
            .gives_nothing(204)
            .refuses(&["unknown-node", "unknown-volume", "volume-needed", "agent-outdated"]),
    ]
}

fn server_routes() -> Vec<Route> {
    vec![
        Route::get("/servers", servers::show, Read, "All servers, and what the cluster can still lose.")
            .gives::<ClusterView>(200),
        Route::delete("/servers/{server}", servers::remove, Root, "Removes a server; its membership ends right after.")
            .gives_nothing(204)
            .refuses(&["unknown-server", "last-server", "quorum-at-risk"]),
        Route::get("/cluster/ca", ca::show, Read, "The cluster's CA, and how far its replacement is.")
            .gives::<CaView>(200),
        Route::post("/cluster/ca/rotate", ca::rotate, Root, "Begins to replace the CA, or goes on without nodes.")
            .may_take::<CaRotateRequest>()
            .gives::<CaView>(202)
            .refuses(&[
                "ca-rotation-running",
                "no-ca-rotation",
                "ca-held-back",
                "stale-ca",
                "stale-ca-rotation",
                "stale-sealing-key",
            ]),
        Route::get(
            "/cluster/sealing-key",
            sealing::show,
            Read,
            "The sealing key's id, and how far its replacement is.",
        )
        .gives::<SealingKeyView>(200),
        Route::post("/cluster/sealing-key/rotate", sealing::rotate, Root, "Begins to replace the sealing key.")
            .may_take::<SealingKeyRotateRequest>()
            .gives::<SealingKeyView>(202)
            .refuses(&["sealing-rotation-running", "stale-sealing-key", "unknown-server"]),
        Route::get("/servers/join-tokens", tokens::list_for_servers, Root, "Join tokens for servers.")
            .gives::<List<JoinTokenView>>(200),
        Route::post("/servers/join-tokens", tokens::mint_for_server, Root, "Mints a token that lets one server in.")
            .may_take::<JoinTokenRequest>()
            .gives::<MintedToken>(201)
            .refuses(&["token-exists", "token-shown-before"]),
        Route::delete("/servers/join-tokens/{id}", tokens::revoke, Root, "Takes a join token back.")
            .gives_nothing(204)
            .refuses(&["unknown-token", "join-token-used"]),
        Route::get("/watch", watch::watch, Read, "Committed changes as server-sent events, from a revision on.")
            .local()
            .query::<watch::WatchQuery>()
            .gives_text(200, "text/event-stream")
            .refuses(&["compacted"]),
    ]
}

fn access_routes() -> Vec<Route> {
    vec![
        Route::get("/tokens", api_tokens::list, Root, "All API tokens, without their texts.")
            .gives::<List<ApiTokenView>>(200),
        Route::post("/tokens", api_tokens::create, Root, "Makes an API token; its text is in this answer only.")
            .takes::<ApiTokenRequest>()
            .gives::<MintedApiToken>(201)
            .refuses(&["token-exists", "token-shown-before", "unknown-node", "token-exceeds-creator", "token-ended"]),
        Route::get("/tokens/{id}", api_tokens::show, Root, "One API token, without its text.")
            .gives::<ApiTokenView>(200)
            .refuses(&["unknown-token"]),
        Route::delete("/tokens/{id}", api_tokens::revoke, Root, "Takes an API token back.")
            .query::<api_tokens::RevokeQuery>()
            .gives_nothing(204)
            .refuses(&["unknown-token", "last-root-token"]),
        Route::get("/audit-log", audit::list, Root, "Who changed what: a page of records.")
            .replicated()
            .query::<audit::AuditQuery>()
            .gives::<AuditPage>(200),
    ]
}

fn move_routes() -> Vec<Route> {
    vec![
        Route::get("/node-moves", moves::list, Read, "Moves, newest first.")
            .query::<moves::ListQuery>()
            .gives::<Items<MoveView>>(200),
        Route::get("/node-moves/{id}", moves::show, Read, "One move.")
            .gives::<MoveView>(200)
            .refuses(&["unknown-move"]),
        Route::post("/node-moves/{id}/cancel", moves::cancel, Write, "Takes a move back.")
            .gives::<MoveView>(202)
            .refuses(&["unknown-move", "move-over", "move-committed"]),
    ]
}

/// What a move can be refused with before it begins.
const MOVE_REFUSED: &[&str] = &[
    "unknown-workload",
    "unknown-node",
    "workload-deleting",
    "workload-suspended",
    "not-placed",
    "move-running",
    "move-exists",
    "node-not-eligible",
    "source-offline",
    "stateful-claim",
    "agent-outdated",
    "host-port-taken",
];

/// A target that can't take the workload is a wrong request, whoever chose it.
const TARGET_REFUSED: &[&str] = &["move-same-node", "no-eligible-node", "node-not-eligible"];

/// What a manifest can be refused with.
const APPLY_REFUSED: &[&str] = &[
    "unknown-database",
    "unknown-node",
    "host-port-taken",
    "node-not-eligible",
    "placement-fixed",
    "stateful-claim",
    "workload-deleting",
    "workload-uid-taken",
    "move-running",
    "agent-outdated",
];

fn workload_routes(kind: WorkloadKind) -> Vec<Route> {
    let plural = kind_path(kind);
    let path = |rest: &str| format!("/{plural}{rest}");
    let rows = vec![
        Route::get(&path(""), workloads::list, Read, "All workloads of this kind, by name.")
            .replicated()
            .query::<workloads::ListQuery>()
            .gives::<List<WorkloadManifest>>(200),
        Route::post(&path(""), workloads::create, Write, "Creates a workload; the same entry places it.")
            .takes::<WorkloadManifest>()
            .gives::<WorkloadManifest>(201)
            .refuses(&["already-exists"])
            .refuses(APPLY_REFUSED),
        Route::get(&path("/{name}"), workloads::show, Read, "One workload.")
            .replicated()
            .gives::<WorkloadManifest>(200)
            .refuses(&["unknown-workload"]),
        Route::put(&path("/{name}"), workloads::replace, Write, "Replaces labels, annotations and spec.")
            .takes::<WorkloadManifest>()
            .versioned()
            .gives::<WorkloadManifest>(200)
            .refuses(&["unknown-workload"])
            .refuses(APPLY_REFUSED),
        Route::delete(
            &path("/{name}"),
            workloads::delete,
            Write,
            "204 when it is gone, 202 while its node removes it.",
        )
        .query::<workloads::DeleteQuery>()
        .versioned()
        .gives::<WorkloadManifest>(202)
        .gives_nothing(204)
        .refuses(&["unknown-workload", "move-running"]),
        Route::get(&path("/{name}/placement"), placement::show, Read, "Where it is, and where it may be.")
            .gives::<PlacementReport>(200)
            .refuses(&["unknown-workload"]),
        Route::put(&path("/{name}/placement"), placement::set, Write, "Replaces the labels that a node must have.")
            .takes::<PlacementRequest>()
            .versioned()
            .gives::<PlacementReport>(200)
            .refuses(&["unknown-workload"])
            .refuses(APPLY_REFUSED),
    ];
    rows.into_iter().map(|row| of_kind(row, kind)).collect()
}

fn run_routes(kind: WorkloadKind) -> Vec<Route> {
    let plural = kind_path(kind);
    let path = |rest: &str| format!("/{plural}/{{name}}{rest}");
    let rows = vec![
        Route::post(&path("/move"), moves::start, Write, "Takes it to another node, or says what that would do.")
            .may_take::<MoveRequest>()
            .gives::<MovePlan>(200)
            .gives::<MoveView>(202)
            .refuses(MOVE_REFUSED)
            .refuses_as(400, TARGET_REFUSED),
        Route::post(&path("/suspend"), lifecycle::suspend, Write, "Stops it and keeps it.")
            .versioned()
            .gives::<WorkloadManifest>(200)
            .refuses(&["unknown-workload", "workload-deleting", "move-running"]),
        Route::post(&path("/resume"), lifecycle::resume, Write, "Lets it run again.")
            .versioned()
            .gives::<WorkloadManifest>(200)
            .refuses(&["unknown-workload", "workload-deleting", "move-running"]),
        Route::post(&path("/restart"), lifecycle::restart, Write, "Stops it and starts it where it is.")
            .versioned()
            .gives::<WorkloadManifest>(200)
            .refuses(&["unknown-workload", "workload-deleting", "workload-suspended", "move-running"]),
        Route::get(&path("/logs"), logs::logs, Read, "What its only container printed.")
            .query::<logs::LogsQuery>()
            .gives_text(200, "text/plain; charset=utf-8")
            .refuses(&["unknown-workload", "not-placed", "logs-unavailable"]),
        Route::get(&path("/logs/{service}"), logs::logs_of, Read, "What one of its containers printed.")
            .query::<logs::LogsQuery>()
            .gives_text(200, "text/plain; charset=utf-8")
            .refuses(&["unknown-workload", "unknown-service", "not-placed", "logs-unavailable"]),
    ];
    rows.into_iter().map(|row| of_kind(row, kind)).collect()
}

fn app_routes() -> Vec<Route> {
    vec![
        Route::put("/apps/{name}/node", app_moves::set_node, Write, "Another node for an app without managed volumes.")
            .scope("workload:{name}")
            .takes::<NodeChoice>()
            .gives::<AppMoveView>(200)
            .gives::<AppMoveView>(202)
            .refuses(&["has-volumes"])
            .refuses(MOVE_REFUSED)
            .refuses_as(400, TARGET_REFUSED),
        Route::post(
            "/apps/{name}/move-with-volumes",
            app_moves::move_with_volumes,
            Write,
            "Another node for an app, with all that it has.",
        )
        .scope("workload:{name}")
        .takes::<NodeChoice>()
        .gives::<AppMoveView>(200)
        .gives::<AppMoveView>(202)
        .refuses(MOVE_REFUSED)
        .refuses_as(400, TARGET_REFUSED),
        Route::get("/apps/{name}/moves", app_moves::list, Read, "The moves of an app, newest first.")
            .replicated()
            .scope("workload:{name}")
            .gives::<Items<AppMoveView>>(200)
            .refuses(&["unknown-workload"]),
        Route::get("/apps/{name}/moves/{id}", app_moves::show, Read, "One move of an app.")
            .replicated()
            .scope("workload:{name}")
            .gives::<AppMoveView>(200)
            .refuses(&["unknown-workload", "unknown-move"]),
    ]
}

fn database_routes() -> Vec<Route> {
    vec![
        // The password is in it.
        Route::get(
            "/databases/{name}/connection",
            lifecycle::connection,
            Root,
            "Where it is reached, with the password.",
        )
        .scope("workload:{name}")
        .gives::<DatabaseConnection>(200)
        .refuses(&["unknown-workload", "no-address"]),
    ]
}

fn of_kind(route: Route, kind: WorkloadKind) -> Route {
    let route = route.of(kind);
    if route.path.contains("{name}") { route.scope("workload:{name}") } else { route }
}
