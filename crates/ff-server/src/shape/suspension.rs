//! Waitpoints that were opened.

use ff_api::waitpoints::{IssuedToken, OpenedWaitpoint};

/// A waitpoint that was opened now, with the tokens that are shown this once.
pub fn opened(opened: ff_engine::OpenedWaitpoint) -> OpenedWaitpoint {
    OpenedWaitpoint {
        waitpoint_id: opened.waitpoint_id,
        key: opened.key,
        expires_at: opened.expires_at,
        tokens: opened.tokens.into_iter().map(|one| IssuedToken { approver: one.approver, token: one.token }).collect(),
    }
}
