//! From submission to its one outcome, the plain way.

use ff_conformance::for_each_host;
use ff_core::state::PublicState;

for_each_host! {
    async fn an_execution_is_submitted_claimed_and_completed(store) {
        store.install_default_lane().await;
        let id = store.submit_kind("mail").await;
        assert_eq!(store.describe(id).await.state, PublicState::Waiting);
        let task = store.claim_one("w1").await;
        assert_eq!(task.execution_id, id);
        assert_eq!(store.describe(id).await.state, PublicState::Active);
        store.complete(&task).await;
        assert_eq!(store.describe(id).await.state, PublicState::Completed);
        assert_eq!(store.story(id).await, ["execution.submitted", "execution.started", "execution.completed"]);
    }
}
