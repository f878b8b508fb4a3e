//! Budgets and quotas behind `ff server`.

use std::collections::BTreeMap;
use std::time::Duration;

use async_trait::async_trait;
use ff_core::types::{BudgetId, ExecutionId, Namespace, QuotaPolicyId, TimestampMs};
use ff_script::generated::{
    BudgetReset, BudgetScope, OnHard, OnSoft, QuotaPart, QuotaRate, QuotaUse, QuotaWeights, RateMode, ResetType,
};
use reqwest::Method;
use serde::Deserialize;
use serde_json::{Map, Value, json};

use super::http::{Http, escaped, read};
use super::limits::Limits;
use crate::SdkError;
use crate::snapshot::{BudgetSnapshot, DimensionSnapshot, QuotaKeySnapshot, QuotaSnapshot, UsageLine, UsageSnapshot};
use crate::usage::{BudgetChange, BudgetSpec, QuotaChange, QuotaSpec};
use crate::waits::unexpected;

fn word<T: std::str::FromStr>(text: &str, what: &str) -> Result<T, SdkError> {
    text.parse().map_err(|_| unexpected(what))
}

#[derive(Deserialize)]
struct DimensionShape {
    hard: Option<u64>,
    soft: Option<u64>,
    used: u64,
    held: u64,
}

#[derive(Deserialize)]
struct BudgetShape {
    budget_id: BudgetId,
    namespace: Namespace,
    parent: Option<BudgetId>,
    dimensions: BTreeMap<String, DimensionShape>,
    on_soft: String,
    on_hard: String,
    approved: bool,
    next_reset_at: Option<TimestampMs>,
}

impl BudgetShape {
    fn snapshot(self) -> Result<BudgetSnapshot, SdkError> {
        let dimension =
            |(name, DimensionShape { hard, soft, used, held })| (name, DimensionSnapshot { hard, soft, used, held });
        Ok(BudgetSnapshot {
            budget_id: self.budget_id,
            namespace: self.namespace,
            parent: self.parent,
            dimensions: self.dimensions.into_iter().map(dimension).collect(),
            on_soft: word::<OnSoft>(&self.on_soft, "an unknown action at a soft limit")?,
            on_hard: word::<OnHard>(&self.on_hard, "an unknown action at a hard limit")?,
            approved: self.approved,
            next_reset_at: self.next_reset_at,
        })
    }
}

#[derive(Deserialize)]
struct RateShape {
    limit: i64,
    window_ms: i64,
    mode: String,
}

#[derive(Deserialize)]
struct WeightsShape {
    limit: i64,
    window_ms: i64,
}

#[derive(Deserialize)]
struct UseShape {
    part: String,
    used: i64,
    limit: i64,
    next_at: Option<i64>,
}

#[derive(Deserialize)]
struct KeyShape {
    key: String,
    parts: Vec<UseShape>,
    held: u64,
    waiting: u64,
    throttled_until: Option<TimestampMs>,
}

#[derive(Deserialize)]
struct QuotaShape {
    quota_id: QuotaPolicyId,
    namespace: Namespace,
    rate: Option<RateShape>,
    concurrency: Option<u64>,
    weighted: Option<WeightsShape>,
    hold_while_suspended: bool,
    #[serde(default)]
    keys: Vec<KeyShape>,
}

impl QuotaShape {
    fn snapshot(self) -> Result<QuotaSnapshot, SdkError> {
        let part = |shape: UseShape| {
            let UseShape { part, used, limit, next_at } = shape;
            Ok(QuotaUse { part: word::<QuotaPart>(&part, "an unknown part of a quota")?, used, limit, next_at })
        };
        let key = |shape: KeyShape| {
            Ok(QuotaKeySnapshot {
                key: shape.key,
                parts: shape.parts.into_iter().map(part).collect::<Result<_, SdkError>>()?,
                held: shape.held,
                waiting: shape.waiting,
                throttled_until: shape.throttled_until,
            })
        };
        let rate = |RateShape { limit, window_ms, mode }| {
            Ok(QuotaRate { limit, window_ms, mode: word::<RateMode>(&mode, "an unknown mode of a rate")? })
        };
        Ok(QuotaSnapshot {
            quota_id: self.quota_id,
            namespace: self.namespace,
            rate: self.rate.map(rate).transpose().map_err(|error: SdkError| error)?,
            concurrency: self.concurrency,
            weighted: self.weighted.map(|WeightsShape { limit, window_ms }| QuotaWeights { limit, window_ms }),
            hold_while_suspended: self.hold_while_suspended,
            keys: self.keys.into_iter().map(key).collect::<Result<_, SdkError>>()?,
        })
    }
}

#[derive(Deserialize)]
struct LineShape {
    attempt_index: u32,
    budget_id: BudgetId,
    dimension: String,
    accepted: u64,
    refused: u64,
}

#[derive(Deserialize)]
struct UsageShape {
    ledger: Vec<LineShape>,
    pending: u64,
}

fn scope(scope: &BudgetScope) -> Value {
    json!({ "type": scope.r#type.as_str(), "id": scope.id })
}

fn reset(reset: &BudgetReset) -> Value {
    match reset.r#type {
        ResetType::None => json!("none"),
        ResetType::Interval => json!({ "interval_ms": reset.interval_ms }),
        ResetType::Day | ResetType::Month => json!({ "calendar": reset.r#type.as_str(), "zone": reset.zone }),
    }
}

fn rate(rate: &QuotaRate) -> Value {
    json!({ "limit": rate.limit, "window_ms": rate.window_ms, "mode": rate.mode.as_str() })
}

fn weights(weights: &QuotaWeights) -> Value {
    json!({ "limit": weights.limit, "window_ms": weights.window_ms })
}

impl Http {
    async fn patch(&self, path: &str, body: &Value) -> Result<Vec<u8>, SdkError> {
        Ok(self.request(Method::PATCH, path, Some(body), Duration::ZERO).await?.1)
    }
}

#[async_trait]
impl Limits for Http {
    async fn create_budget(&self, budget: BudgetSpec) -> Result<BudgetSnapshot, SdkError> {
        let fields = budget.fields;
        let limit = |limit: &ff_script::generated::DimensionLimit| {
            (limit.name.clone(), json!({ "hard": limit.hard, "soft": limit.soft }))
        };
        let body = json!({
            "budget_id": fields.budget_id,
            "namespace": fields.namespace,
            "parent": fields.parent,
            "scope": scope(&fields.scope),
            "dimensions": fields.dimensions.iter().map(limit).collect::<Map<_, _>>(),
            "reset": reset(&fields.reset),
            "on_soft": fields.on_soft.as_str(),
            "on_hard": fields.on_hard.as_str(),
        });
        self.post::<BudgetShape>("/v1/budgets", &body, Duration::ZERO).await?.snapshot()
    }

    async fn describe_budget(&self, id: BudgetId) -> Result<BudgetSnapshot, SdkError> {
        self.get::<BudgetShape>(&format!("/v1/budgets/{id}")).await?.snapshot()
    }

    async fn change_budget(&self, id: BudgetId, change: BudgetChange) -> Result<BudgetSnapshot, SdkError> {
        let mut dimensions = Map::new();
        for (name, limit) in &change.patch.limits {
            let mut said = Map::new();
            // A limit that is named and null is taken away; one that is not named stays.
            for (which, limit) in [("hard", limit.hard), ("soft", limit.soft)] {
                if let Some(limit) = limit {
                    said.insert(which.to_owned(), json!(limit));
                }
            }
            dimensions.insert(name.clone(), Value::Object(said));
        }
        let body = json!({
            "dimensions": dimensions,
            "on_soft": change.patch.on_soft.map(OnSoft::as_str),
            "on_hard": change.patch.on_hard.map(OnHard::as_str),
        });
        let path = format!("/v1/budgets/{id}");
        read::<BudgetShape>(&path, &self.patch(&path, &body).await?)?.snapshot()
    }

    async fn reset_budget(&self, id: BudgetId) -> Result<BudgetSnapshot, SdkError> {
        let path = format!("/v1/budgets/{id}/reset");
        self.post::<BudgetShape>(&path, &json!({}), Duration::ZERO).await?.snapshot()
    }

    async fn approve_budget(&self, id: BudgetId) -> Result<BudgetSnapshot, SdkError> {
        let path = format!("/v1/budgets/{id}/approve");
        self.post::<BudgetShape>(&path, &json!({}), Duration::ZERO).await?.snapshot()
    }

    async fn create_quota(&self, quota: QuotaSpec) -> Result<QuotaSnapshot, SdkError> {
        let fields = quota.fields;
        let body = json!({
            "quota_id": fields.quota_id,
            "namespace": fields.namespace,
            "rate": fields.rate.as_ref().map(rate),
            "concurrency": fields.concurrency,
            "weighted": fields.weighted.as_ref().map(weights),
            "hold_while_suspended": fields.hold_while_suspended,
        });
        self.post::<QuotaShape>("/v1/quotas", &body, Duration::ZERO).await?.snapshot()
    }

    async fn describe_quota(&self, id: QuotaPolicyId, key: Option<&str>) -> Result<QuotaSnapshot, SdkError> {
        let query = key.map(|key| format!("?key={}", escaped(key))).unwrap_or_default();
        self.get::<QuotaShape>(&format!("/v1/quotas/{id}{query}")).await?.snapshot()
    }

    async fn change_quota(&self, id: QuotaPolicyId, change: QuotaChange) -> Result<QuotaSnapshot, SdkError> {
        let mut body = Map::new();
        if let Some(wanted) = &change.rate {
            body.insert("rate".to_owned(), json!(wanted.as_ref().map(rate)));
        }
        if let Some(wanted) = change.concurrency {
            body.insert("concurrency".to_owned(), json!(wanted));
        }
        if let Some(wanted) = &change.weighted {
            body.insert("weighted".to_owned(), json!(wanted.as_ref().map(weights)));
        }
        if let Some(wanted) = change.hold_while_suspended {
            body.insert("hold_while_suspended".to_owned(), json!(wanted));
        }
        let path = format!("/v1/quotas/{id}");
        read::<QuotaShape>(&path, &self.patch(&path, &Value::Object(body)).await?)?.snapshot()
    }

    async fn throttle_quota(
        &self,
        id: QuotaPolicyId,
        key: &str,
        until: TimestampMs,
    ) -> Result<Option<TimestampMs>, SdkError> {
        #[derive(Deserialize)]
        struct Throttled {
            throttled_until: Option<TimestampMs>,
        }
        let body = json!({ "key": key, "until": until });
        let answer: Throttled = self.post(&format!("/v1/quotas/{id}/throttle"), &body, Duration::ZERO).await?;
        Ok(answer.throttled_until)
    }

    async fn usage(&self, id: ExecutionId) -> Result<UsageSnapshot, SdkError> {
        let usage: UsageShape = self.get(&format!("/v1/executions/{id}/usage")).await?;
        let line = |line: LineShape| UsageLine {
            attempt_index: ff_core::types::AttemptIndex::new(line.attempt_index),
            budget_id: line.budget_id,
            dimension: line.dimension,
            accepted: line.accepted,
            refused: line.refused,
        };
        Ok(UsageSnapshot { lines: usage.ledger.into_iter().map(line).collect(), pending: usage.pending })
    }
}
