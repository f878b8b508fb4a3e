//! Verifies the invariants on a live store; repairs are listed, never silent.

use std::collections::BTreeMap;

use ff_script::generated::{CheckExecutions, CheckExecutionsReply, CheckKeys, CheckKeysReply, Finding};
use ff_script::{Client, Error, Route, ScanCursor};

const PAGE: i64 = 64;
const SCAN_PAGE: usize = 512;
const KEYS_PER_CALL: usize = 64;

/// What a check of the whole store found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Fsck {
    /// Executions looked at.
    pub executions: i64,
    /// Keys looked at.
    pub keys: usize,
    /// Broken invariants, each with whether it was repaired.
    pub findings: Vec<Finding>,
    /// Keys that begin like ours and belong to no partition of this store.
    pub foreign: Vec<String>,
}

impl Fsck {
    /// True when nothing is wrong.
    #[must_use]
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && self.foreign.is_empty()
    }

    /// Looks at every record and every key; with `repair` puts right what has one right answer.
    pub async fn run(client: &Client, repair: bool) -> Result<Self, Error> {
        let mut report = Self::default();
        for route in client.execution_routes() {
            report.check_executions(client, route, repair).await?;
        }
        report.check_keys(client, repair).await?;
        Ok(report)
    }

    async fn check_executions(&mut self, client: &Client, route: Route, repair: bool) -> Result<(), Error> {
        let mut offset = 0;
        loop {
            let call = CheckExecutions { limit: PAGE, offset, repair };
            let CheckExecutionsReply::Checked { findings, looked, more } = client.call(route, &call).await?;
            self.executions += looked;
            self.findings.extend(findings);
            if !more {
                return Ok(());
            }
            offset += looked;
        }
    }

    async fn check_keys(&mut self, client: &Client, repair: bool) -> Result<(), Error> {
        let routes: BTreeMap<String, Route> = client
            .execution_routes()
            .chain([Route::Fleet])
            .map(|route| (route.tag().expect("only the configuration has no tag"), route))
            .collect();
        let mut cursor = ScanCursor::Start;
        while cursor != ScanCursor::End {
            let page = client.host().scan(cursor, SCAN_PAGE).await?;
            cursor = page.next;
            let mut by_route: BTreeMap<Route, Vec<Vec<u8>>> = BTreeMap::new();
            for key in page.keys {
                self.keys += 1;
                match tag_of(&key).and_then(|tag| routes.get(tag)) {
                    Some(route) => by_route.entry(*route).or_default().push(key),
                    None if key == Route::Config.to_string().as_bytes() => {}
                    None => self.foreign.push(key.escape_ascii().to_string()),
                }
            }
            for (route, keys) in by_route {
                for keys in keys.chunks(KEYS_PER_CALL) {
                    let call = CheckKeys { keys: keys.iter().cloned().map(Into::into).collect(), repair };
                    let CheckKeysReply::Checked { findings, .. } = client.call(route, &call).await?;
                    self.findings.extend(findings);
                }
            }
        }
        Ok(())
    }
}

fn tag_of(key: &[u8]) -> Option<&str> {
    let key = std::str::from_utf8(key).ok()?;
    let from = key.find('{')?;
    let to = key[from..].find('}')? + from;
    Some(&key[from..=to])
}
