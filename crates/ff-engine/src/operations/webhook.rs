//! Webhooks: which addresses are taken, and how far a delivery is.

use ff_core::error::{EngineError, ValidationKind};
use ff_core::types::{ExecutionId, FlowId};
use ff_core::webhook::WebhookUrl;
use ff_script::Error;
use ff_script::generated::{DescribeWebhook, DescribeWebhookReply, WebhookStatus};

use super::Operations;

impl Operations {
    /// Refuses what is not an address, and what the courier of this process would never carry to.
    pub(super) fn check_webhook(&self, field: impl FnOnce() -> String, url: Option<&str>) -> Result<(), Error> {
        let Some(url) = url else { return Ok(()) };
        let problem = match url.parse::<WebhookUrl>() {
            Ok(url) => self.courier.get().and_then(|courier| courier.refusal(&url)),
            Err(error) => Some(error.to_string()),
        };
        problem.map_or(Ok(()), |detail| {
            let kind = ValidationKind::InvalidArgument { field: field() };
            Err(Error::Engine(EngineError::Validation { kind, detail }))
        })
    }

    /// How far the webhook of an execution's last end is; nothing before the first end.
    pub async fn webhook_of(&self, execution_id: ExecutionId) -> Result<Option<WebhookStatus>, Error> {
        let call = DescribeWebhook { execution_id: Some(execution_id), flow_id: None };
        let DescribeWebhookReply::Webhook { status } =
            self.client.call(self.client.route_of(&execution_id), &call).await?;
        Ok(status)
    }

    /// How far the webhook of a flow's last end is; nothing before the first end.
    pub async fn webhook_of_flow(&self, flow_id: FlowId) -> Result<Option<WebhookStatus>, Error> {
        let call = DescribeWebhook { execution_id: None, flow_id: Some(flow_id) };
        let DescribeWebhookReply::Webhook { status } =
            self.client.call(self.client.route_of_flow(&flow_id), &call).await?;
        Ok(status)
    }
}
