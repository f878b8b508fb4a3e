//! Names in refusals: a call carries a share of a request, in an order of its own; whoever made the request knows another.

use ff_core::error::{ConflictKind, EngineError, StateKind, ValidationKind};
use ff_script::Error;

/// Where the items of a call stand in the request they were taken from.
#[derive(Clone, Debug, Default)]
pub(super) struct Places {
    pub(super) members: Vec<usize>,
    pub(super) edges: Vec<usize>,
    pub(super) children: Vec<usize>,
}

impl Places {
    /// The request's name for a field of the call.
    fn name(&self, field: &str) -> String {
        let field = field.strip_prefix("flow.").unwrap_or(field).replacen(".submission", "", 1);
        let field = field.strip_suffix(".nested").map_or(field.clone(), |member| format!("{member}.flow"));
        for (list, places) in [("members", &self.members), ("edges", &self.edges), ("children", &self.children)] {
            let Some(rest) = field.strip_prefix(list).and_then(|rest| rest.strip_prefix('[')) else { continue };
            let Some((index, rest)) = rest.split_once(']') else { continue };
            if let Some(place) = index.parse().ok().and_then(|index: usize| places.get(index)) {
                return format!("{list}[{place}]{rest}");
            }
        }
        field
    }

    /// The same refusal with the request's names.
    pub(super) fn named(&self, error: Error) -> Error {
        renamed(error, |field| self.name(field))
    }
}

/// The same refusal of one submission: its fields are the request's own.
pub(super) fn of_submission(error: Error) -> Error {
    renamed(error, |field| field.strip_prefix("submission.").unwrap_or(field).to_owned())
}

/// The same refusal, said of something that stands within another request.
pub(super) fn within(error: Error, place: &str) -> Error {
    renamed(error, |field| format!("{place}.{field}"))
}

fn renamed(error: Error, name: impl Fn(&str) -> String) -> Error {
    let Error::Engine(mut engine) = error else { return error };
    match &mut engine {
        EngineError::Validation { kind: ValidationKind::InvalidArgument { field }, .. } => *field = name(field),
        // The facts of other rules are in their words.
        EngineError::Validation { detail, .. } => {
            if let Some((field, rest)) = detail.strip_prefix("field ").and_then(|rest| rest.split_once(", ")) {
                *detail = format!("field {}, {rest}", name(field));
            }
        }
        EngineError::Conflict(ConflictKind::IdempotencyConflict { detail })
        | EngineError::Conflict(ConflictKind::Refused(ff_core::error::Refused { detail, .. }))
        | EngineError::State(StateKind::Refused(ff_core::error::Refused { detail, .. })) => {
            *detail = detail
                .iter()
                .map(|(key, value)| (key.to_owned(), if key == "field" { name(value) } else { value.to_owned() }))
                .collect();
        }
        _ => {}
    }
    Error::Engine(engine)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_field_has_the_name_of_the_request() {
        let places = Places { members: vec![4, 2], edges: vec![7], children: vec![64] };
        for (field, name) in [
            ("members[1].submission.lane", "members[2].lane"),
            ("members[0].submission", "members[4]"),
            ("members[0].inbound.k", "members[4].inbound.k"),
            ("members[1].nested", "members[2].flow"),
            ("edges[0].to", "edges[7].to"),
            ("children[0].submission.priority", "children[64].priority"),
            ("flow.kind", "kind"),
            ("members[9].key", "members[9].key"),
            ("seal", "seal"),
        ] {
            assert_eq!(places.name(field), name);
        }
    }
}
