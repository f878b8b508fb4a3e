//! The caller of an operation: its name, its roles, and where it may act.

use ff_api::Problem;
use ff_core::ErrorCode;
use ff_script::generated::{self, Role, Worker};

/// Who acts while there is no authentication.
const LOCAL: &str = "local";
/// The actor of a program with a store in reach.
const SDK: &str = "sdk";
/// Who bears the root token.
const ROOT: &str = "root";

/// Someone who may do something here. What a request says may narrow this, never widen it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Principal {
    name: String,
    roles: Vec<Role>,
    namespaces: Option<Vec<String>>,
    lanes: Option<Vec<String>>,
    capabilities: Option<Vec<String>>,
}

impl Principal {
    fn everything(name: &str) -> Self {
        Self { name: name.to_owned(), roles: vec![Role::Admin], namespaces: None, lanes: None, capabilities: None }
    }

    /// Whoever reaches a server without authentication.
    pub fn local() -> Self {
        Self::everything(LOCAL)
    }

    /// A program that reaches the store itself, through the SDK.
    pub fn sdk() -> Self {
        Self::everything(SDK)
    }

    /// The bearer of the root token.
    pub fn root() -> Self {
        Self::everything(ROOT)
    }

    /// Nobody: what the open routes are asked by.
    pub fn nobody() -> Self {
        Self { name: "nobody".to_owned(), roles: Vec::new(), namespaces: None, lanes: None, capabilities: None }
    }

    /// The actor of what it does.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// True when one of its roles is among these; an admin has them all.
    pub fn has_any(&self, roles: &[Role]) -> bool {
        self.is_admin() || self.roles.iter().any(|role| roles.contains(role))
    }

    /// True when it may do everything that its scope covers.
    pub fn is_admin(&self) -> bool {
        self.roles.contains(&Role::Admin)
    }

    /// True when it may act in some namespaces or lanes only.
    pub fn is_scoped(&self) -> bool {
        self.namespaces.is_some() || self.lanes.is_some()
    }

    /// Who registers workers and presents their fences; nobody in particular without authentication.
    pub fn owner(&self) -> Option<String> {
        (self.name != LOCAL).then(|| self.name.clone())
    }

    /// True when this is the owner of a worker, or one who may stand in for it.
    pub fn owns(&self, owner: Option<&str>) -> bool {
        self.is_admin() || owner.is_none_or(|owner| owner == self.name)
    }

    /// True when it may act in this namespace, and in this lane of it.
    pub fn covers(&self, namespace: &str, lane: Option<&str>) -> bool {
        let within = |scope: &Option<Vec<String>>, name: &str| {
            scope.as_ref().is_none_or(|names| names.iter().any(|known| known == name))
        };
        within(&self.namespaces, namespace) && lane.is_none_or(|lane| within(&self.lanes, lane))
    }

    /// Fails as if the thing were not there, when it lies outside of the scope.
    pub fn sees(&self, namespace: &str, lane: Option<&str>, code: ErrorCode) -> Result<(), Problem> {
        if self.covers(namespace, lane) { Ok(()) } else { Err(Problem::of_code(code)) }
    }

    /// Fails for a worker outside of its scope.
    pub fn check_worker(&self, worker: &Worker) -> Result<(), Problem> {
        let seen = self.sees(&worker.namespace, None, ErrorCode::WorkerNotRegistered);
        seen.map_err(|problem| problem.about(&worker.instance))
    }

    /// Refuses what is outside of its scope, by the field that says so.
    pub fn check(&self, namespace: &str, lane: Option<&str>) -> Result<(), Problem> {
        if !self.covers(namespace, None) {
            return Err(outside("namespace", namespace));
        }
        match lane {
            Some(lane) if !self.covers(namespace, Some(lane)) => Err(outside("lane", lane)),
            _ => Ok(()),
        }
    }

    /// Refuses a lane outside of its scope.
    pub fn check_lane(&self, lane: &str) -> Result<(), Problem> {
        match &self.lanes {
            Some(lanes) if !lanes.iter().any(|known| known == lane) => Err(outside("lane", lane)),
            _ => Ok(()),
        }
    }

    /// Refuses what reaches over lanes to one that may act in some of them only.
    pub fn check_all_lanes(&self, what: &str) -> Result<(), Problem> {
        match &self.lanes {
            None => Ok(()),
            Some(_) => {
                let detail = format!("{what} reaches over lanes: it takes a token without lanes");
                Err(Problem::forbidden(detail))
            }
        }
    }

    /// Refuses capabilities a worker of this principal may not claim to have.
    pub fn check_capabilities(&self, capabilities: &[String]) -> Result<(), Problem> {
        let Some(allowed) = &self.capabilities else { return Ok(()) };
        match capabilities.iter().find(|capability| !allowed.contains(capability)) {
            Some(capability) => Err(outside("capabilities", capability)),
            None => Ok(()),
        }
    }

    /// The namespace a list is about: the one asked for, or the only one there is for this principal.
    pub fn namespace(&self, asked: Option<String>) -> Result<Option<String>, Problem> {
        within("namespace", asked, self.namespaces.as_deref())
    }

    /// The lane a list is about: the one asked for, or the only one there is for this principal.
    pub fn lane(&self, asked: Option<String>) -> Result<Option<String>, Problem> {
        within("lane", asked, self.lanes.as_deref())
    }
}

fn within(field: &str, asked: Option<String>, scope: Option<&[String]>) -> Result<Option<String>, Problem> {
    match (asked, scope) {
        (asked, None) => Ok(asked),
        (Some(asked), Some(scope)) if scope.contains(&asked) => Ok(Some(asked)),
        (Some(asked), Some(_)) => Err(outside(field, &asked)),
        (None, Some([only])) => Ok(Some(only.clone())),
        (None, Some(scope)) => Err(Problem::invalid(field, format!("must be given: one of {}", scope.join(", ")))),
    }
}

impl From<generated::Access> for Principal {
    fn from(access: generated::Access) -> Self {
        let generated::Access { name, roles, namespaces, lanes, capabilities, .. } = access;
        Self { name, roles, namespaces, lanes, capabilities }
    }
}

fn outside(field: &str, value: &str) -> Problem {
    Problem::forbidden(format!("{field} {value:?} is outside of what this token covers"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scoped() -> Principal {
        Principal {
            name: "ci".to_owned(),
            roles: vec![Role::Submit],
            namespaces: Some(vec!["team-a".to_owned()]),
            lanes: Some(vec!["builds".to_owned()]),
            capabilities: Some(vec!["gpu".to_owned()]),
        }
    }

    #[test]
    fn a_scope_covers_its_own_namespaces_and_lanes_only() {
        let ci = scoped();
        assert!(ci.check("team-a", Some("builds")).is_ok() && ci.check("team-a", None).is_ok());
        assert!(ci.check("team-b", Some("builds")).is_err() && ci.check("team-a", Some("deploys")).is_err());
        assert!(ci.check_capabilities(&["gpu".to_owned()]).is_ok());
        assert!(ci.check_capabilities(&["gpu".to_owned(), "root".to_owned()]).is_err());
        assert_eq!(ci.namespace(None).unwrap(), Some("team-a".to_owned()));
        assert!(ci.namespace(Some("team-b".to_owned())).is_err());
    }

    #[test]
    fn roles_do_not_include_each_other_but_for_admin() {
        let ci = scoped();
        assert!(ci.has_any(&[Role::Read, Role::Submit]) && !ci.has_any(&[Role::Operator]) && !ci.has_any(&[]));
        assert!(Principal::root().has_any(&[Role::Metrics]) && Principal::local().has_any(&[]));
        assert!(!Principal::nobody().has_any(&[Role::Read]));
    }

    #[test]
    fn a_worker_is_its_owners() {
        let ci = scoped();
        assert!(ci.owns(Some("ci")) && !ci.owns(Some("other")) && Principal::root().owns(Some("other")));
        assert_eq!((ci.owner().as_deref(), Principal::local().owner()), (Some("ci"), None));
    }
}
