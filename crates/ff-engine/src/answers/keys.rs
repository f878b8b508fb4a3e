//! The keys that sign waitpoint tokens: their names and times, never the keys.

use std::time::Duration;

use ff_api::keys::{KeysChanged, ListKeys, RevokeKey, RotateKeys, SigningKey};
use ff_api::webhooks::{GetWebhookKeys, WebhookKey, WebhookKeys};
use ff_api::{Ask, Listed, Problem};
use ff_keys::{KeyFacts, KeyId};
use ff_script::generated::RecordedAction;

use crate::principal::Principal;
use crate::service::{Handle, Service};
use crate::waitpoints::keys_problem;

/// How long tokens of the old key are accepted by default.
const GRACE_MS: u64 = 24 * 60 * 60 * 1000;
/// The longest grace: ten years.
const GRACE_MAX_MS: u64 = 10 * 365 * 24 * 60 * 60 * 1000;

fn named(facts: KeyFacts) -> SigningKey {
    SigningKey {
        key_id: facts.id.as_str().to_owned(),
        made_at: facts.made_at.as_millis(),
        signs: facts.until.is_none(),
        accepted_until: facts.until.map(|until| until.as_millis()),
    }
}

impl Handle<ListKeys> for Service {
    async fn handle(&self, _: &Principal, _: Ask<ListKeys>) -> Result<Listed<SigningKey>, Problem> {
        Ok(Listed { items: self.signing_keys()?, next_cursor: None })
    }
}

impl Handle<RotateKeys> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<RotateKeys>) -> Result<KeysChanged, Problem> {
        let grace_ms = ask.body.grace_ms.unwrap_or(GRACE_MS);
        if grace_ms > GRACE_MAX_MS {
            return Err(Problem::invalid("grace_ms", format!("must be in 0..={GRACE_MAX_MS}, got {grace_ms}")));
        }
        // Keys of a store others sign for are not replaced by keys nobody else has.
        self.waitpoints()?.note_keys().await?;
        let keys = self.waitpoints()?.keys().clone();
        let change = move || keys.rotate(Duration::from_millis(grace_ms)).map(|signs| (signs.clone(), signs));
        self.change_keys(by, RecordedAction::KeysRotated, change).await
    }
}

impl Handle<RevokeKey> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<RevokeKey>) -> Result<KeysChanged, Problem> {
        let id: KeyId =
            ask.at.parse().map_err(|error: ff_keys::InvalidKeyId| Problem::invalid("key_id", error.to_string()))?;
        self.waitpoints()?.note_keys().await?;
        let keys = self.waitpoints()?.keys().clone();
        let change = move || keys.revoke(&id).map(|signs| (signs, id));
        self.change_keys(by, RecordedAction::KeyRevoked, change).await
    }
}

impl Handle<GetWebhookKeys> for Service {
    async fn handle(&self, by: &Principal, ask: Ask<GetWebhookKeys>) -> Result<WebhookKeys, Problem> {
        let namespace = ask.query.or_default();
        by.check(&namespace, None)?;
        self.waitpoints()?.note_keys().await?;
        let keys = self.waitpoints()?.keys().webhook_keys(&namespace).map_err(keys_problem)?;
        let keys = keys.iter().map(|key| WebhookKey {
            key_id: key.id().as_str().to_owned(),
            key: key.expose().to_owned(),
            signs_until: key.until().map(|until| until.as_millis()),
        });
        Ok(WebhookKeys { keys: keys.collect(), namespace })
    }
}

impl Service {
    fn signing_keys(&self) -> Result<Vec<SigningKey>, Problem> {
        Ok(self.waitpoints()?.keys().facts().into_iter().map(named).collect())
    }

    /// Changes the file, which may wait for another process, and tells the store the names, and who did it. The change
    /// returns the key that signs now, and the one it is about.
    async fn change_keys(
        &self,
        by: &Principal,
        action: RecordedAction,
        change: impl FnOnce() -> Result<(KeyId, KeyId), ff_keys::Error> + Send + 'static,
    ) -> Result<KeysChanged, Problem> {
        let (signs, about) = match tokio::task::spawn_blocking(change).await {
            Ok(changed) => changed.map_err(keys_problem)?,
            Err(error) => {
                tracing::error!(%error, "changing the keys did not end well");
                return Err(Problem::new(500, "internal", "the server made a mistake; its log has the details"));
            }
        };
        self.operations.record_action(action, by.name(), Some(about.as_str().to_owned())).await?;
        self.waitpoints()?.note_keys().await?;
        tracing::info!(key_id = signs.as_str(), actor = by.name(), "the signing keys changed");
        Ok(KeysChanged { key_id: signs.as_str().to_owned(), keys: self.signing_keys()? })
    }
}
