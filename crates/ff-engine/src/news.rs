//! What partitions announce, decoded, with the news of what may have been lost.

use ff_script::{Host, Route, Wake, WakeUp, Watch};
use tokio::sync::broadcast::error::RecvError;

/// One thing heard.
#[derive(Clone, Debug, PartialEq)]
pub enum News {
    /// A partition announced something.
    Said(Route, Wake),
    /// Announcements of these routes may have been lost: look at each once.
    Lost(Vec<Route>),
    /// Announcements of any route may have been lost.
    LostAny,
}

/// A receiver of decoded announcements.
pub struct Listener {
    watch: Watch,
}

impl Listener {
    /// Hears what the host's subscribed partitions announce from now on.
    #[must_use]
    pub fn new(host: &dyn Host) -> Self {
        Self { watch: host.watch() }
    }

    /// The next announcements; nothing when the host is closed.
    pub async fn next(&mut self) -> Option<Vec<News>> {
        match self.watch.recv().await {
            Ok(WakeUp::Message { route, payload }) => match Wake::read_all(&payload) {
                Ok(wakes) => Some(wakes.into_iter().map(|wake| News::Said(route, wake)).collect()),
                Err(error) => {
                    tracing::warn!(%route, %error, "an announcement cannot be read");
                    Some(vec![News::Lost(vec![route])])
                }
            },
            Ok(WakeUp::Resubscribed { routes }) => Some(vec![News::Lost(routes)]),
            Err(RecvError::Lagged(_)) => Some(vec![News::LostAny]),
            Err(RecvError::Closed) => None,
        }
    }
}
