//! The older verbs for apps: another node, with or without volumes. Each is a move underneath, shown in the older shape.

use cara_core::model::{Move, WorkloadKind};
use cara_core::{MoveId, Rejected};
use cara_proto::rest::{AppMoveStep, AppMoveView, MoveRequest};
use http::StatusCode;

use super::rest::Asker;
use super::{Api, find, moves};
use crate::error::ApiError;
use crate::wire::app_move_view;

/// Moves of one app that a list shows.
const LISTED_MAX: usize = 50;

/// What an older verb came to.
pub enum AppMoved {
    /// Nothing has to be copied, so nothing has to be waited for.
    AtOnce(AppMoveView),
    /// Volumes are on their way.
    Begun(AppMoveView),
}

impl Api {
    /// Gives an app another node; empty = one is chosen.
    ///
    /// # Errors
    /// As [`Api::start_move`]; 400 when it has managed volumes and `with_volumes` is false.
    pub async fn move_app(
        &self,
        asker: &Asker,
        name: &str,
        node: &str,
        with_volumes: bool,
    ) -> Result<AppMoved, ApiError> {
        let (placed, target, volumes) = self.read_local(|state| {
            let workload = find::workload(state, WorkloadKind::App, name)?;
            let placed = workload.placement.as_ref().map(|placement| placement.node.clone());
            Ok::<_, ApiError>((placed, find::chosen_node(state, node)?, workload.spec.has_state()))
        })?;
        if volumes && !with_volumes {
            return Err(ApiError::Bad {
                status: StatusCode::BAD_REQUEST,
                code: "has-volumes",
                detail: format!("app {name} has managed volumes, which would stay behind"),
                hint: "use move-with-volumes, or caractrl nodes move app",
            });
        }
        let known = self.was_done(asker, "StartMove");
        if let (Some(target), false) = (&target, known)
            && placed.as_ref() == Some(target)
        {
            let done =
                AppMoveStep { name: "update_placement".into(), status: "succeeded".into(), ..AppMoveStep::default() };
            return Ok(AppMoved::AtOnce(AppMoveView {
                id: String::new(),
                service_name: name.to_owned(),
                from: target.to_string(),
                to: target.to_string(),
                status: "succeeded".into(),
                error: None,
                steps: vec![done],
            }));
        }
        let request = MoveRequest { node_id: node.to_owned(), ..MoveRequest::default() };
        let begun = self.start_move(asker, WorkloadKind::App, name, &request).await?;
        let view = self.show_app_move(name, &begun.id)?;
        Ok(if volumes { AppMoved::Begun(view) } else { AppMoved::AtOnce(view) })
    }

    /// One move of an app.
    ///
    /// # Errors
    /// 404 when it isn't kept, 400 when it is of something else.
    pub fn show_app_move(&self, name: &str, id: &str) -> Result<AppMoveView, ApiError> {
        let id = MoveId::from(id);
        self.read_local(|state| {
            let mv = state.get_move(&id).ok_or_else(|| Rejected::UnknownMove { id: id.to_string() })?;
            if !is_of(mv, name) {
                return Err(ApiError::invalid(format!("move {id} is of {}, not of app {name}", mv.name)));
            }
            Ok(app_move_view(state, mv))
        })
    }

    /// The moves of an app, newest first.
    ///
    /// # Errors
    /// 404 when there is no such app.
    pub fn list_app_moves(&self, name: &str) -> Result<Vec<AppMoveView>, ApiError> {
        self.read_local(|state| {
            find::workload(state, WorkloadKind::App, name)?;
            let found = moves::newest(state, |mv| is_of(mv, name));
            Ok(found.into_iter().take(LISTED_MAX).map(|mv| app_move_view(state, mv)).collect())
        })
    }
}

fn is_of(mv: &Move, name: &str) -> bool {
    mv.kind == WorkloadKind::App && mv.name == name
}
