//! What went wrong, in words: what the server refused, why there was no answer, and what a user can do about it.

use std::process::ExitCode;

use ff_api::Problem;
use ff_sdk::http::{HttpError, Lost};

/// The exit code when the command line or the configuration is wrong.
pub const WRONG_USAGE: u8 = 2;
/// The exit code when an id is unknown.
const UNKNOWN_ID: u8 = 4;

/// The command line, or a file it names, is wrong.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct WrongUsage(pub String);

/// There was no answer, or only a part of one.
#[derive(Debug, thiserror::Error)]
#[error("{0}")]
pub struct Away(String);

impl Away {
    /// Why there was none.
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }
}

/// A refusal of the server.
#[derive(Debug, thiserror::Error)]
#[error("{problem}{}", next_step(problem.code()))]
pub struct Refused {
    problem: Problem,
}

impl Refused {
    /// What the server said.
    pub fn new(problem: impl Into<Problem>) -> Self {
        Self { problem: problem.into() }
    }

    /// True when this is its code.
    pub fn is(&self, code: &str) -> bool {
        self.problem.code() == code
    }

    /// True when the server is about to stop or waits for its store: asking again later may help.
    pub fn passes(&self) -> bool {
        matches!(self.problem.code(), "store_unavailable" | "closed")
    }

    /// 2 when the command line is wrong, 4 for an unknown id, 1 otherwise.
    fn exit_code(&self) -> ExitCode {
        match self.problem.code() {
            "invalid_argument" | "capability_invalid" | "cycle_detected" => ExitCode::from(WRONG_USAGE),
            code if code.ends_with("_not_found") || matches!(code, "waitpoint_not_open" | "worker_not_registered") => {
                ExitCode::from(UNKNOWN_ID)
            }
            _ => ExitCode::FAILURE,
        }
    }
}

/// Why a request to the server at this address failed, and what to do about it.
pub fn failed(url: &str, error: HttpError) -> anyhow::Error {
    match error {
        HttpError::Refused(problem) => Refused::new(problem).into(),
        HttpError::Foreign { status, said, .. } => {
            let said: String = said.chars().take(100).map(|c| if c.is_control() { ' ' } else { c }).collect();
            anyhow::anyhow!(
                "this is not a FlowFabric server: it answered {status} {said:?}; say where one is with --url or FF_URL"
            )
        }
        HttpError::Lost { cause: Lost::Untrusted(problem), .. } => anyhow::anyhow!(
            "the certificate of {url} is not trusted: {problem}; name the one that signed it with --ca-cert or FF_CA_CERT"
        ),
        HttpError::Lost { cause: Lost::OtherScheme, .. } => {
            let other = match url.split_once("://") {
                Some(("https", rest)) => format!("http://{rest}"),
                _ => format!("https://{}", url.trim_start_matches("http://")),
            };
            WrongUsage(format!("the server at {url} speaks another protocol; use {other} (--url or FF_URL)")).into()
        }
        HttpError::Lost { cause: Lost::Absent, .. } => Away::new(format!(
            "no server answers at {url}; start one with `ff dev` or `ff server`, or say where it is with --url or FF_URL"
        ))
        .into(),
        HttpError::Lost { source, .. } => anyhow::anyhow!(source).context(Away::new(format!("{url} did not answer"))),
        HttpError::Unreadable { asked, source } => anyhow::Error::new(source)
            .context(format!("the answer of {asked} is not what this version knows; use the same version of ff")),
        other => anyhow::Error::new(other),
    }
}

/// What a user can do about a refusal, where it is not plain from its words.
fn next_step(code: &str) -> &'static str {
    match code {
        "execution_not_found" => "; `ff list` shows what is there",
        "flow_not_found" => "; `ff flow list` shows what is there",
        "flow_terminal" => "; nothing can be added to it any more, nor run again in a cancelled one",
        "member_started" => "; add a member behind it instead",
        "idempotency_conflict" => "; use another --idempotency-key (for a flow: flow_id) for another body",
        "lane_full" => "; wait for its work to be done, or raise the lane's max_depth",
        "at_capacity" => "; wait for running work to end, or raise the lane's max_active",
        "lane_disabled" => "; resume the lane or choose another with --lane",
        "execution_not_terminal" => "; cancel it first, or wait with `ff result --wait`",
        "max_replays" => "; submit it anew",
        "unauthenticated" => {
            "; present a token with --token TOKEN or @FILE (the server's data directory has the root token in the file root-token), or set FF_TOKEN"
        }
        "invalid_token" => "; use the waitpoint token as it was handed out, or ask for another: `ff token reissue`",
        "waitpoint_not_found" => "; `ff approvals` shows the open ones",
        "waitpoint_not_open" => {
            "; it was answered, has expired, or the token was replaced or spent: `ff approvals` shows what is open"
        }
        "signal_not_allowed" => "; `ff approvals -o json` says which names it takes",
        "execution_not_suspended" => "; `ff show` says what it is doing",
        "attempt_not_found" => "; `ff show` lists its attempts",
        "step_not_found" => "; `ff show ID --steps` lists those it has recorded",
        "access_not_found" => "; `ff token list` shows those there are",
        "forbidden" => "; use a token with that role or scope: `ff token create` makes one",
        "key_not_found" => "; `ff key list` shows those there are",
        "quota_not_found" => "; `ff quota list` shows those there are",
        "budget_not_found" => "; `ff budget list` shows those there are",
        "schedule_not_found" => "; `ff schedule list` shows those there are",
        "schedule_version_conflict" => "; read it again with `ff schedule show -o json`",
        "schedule_busy" => "; wait for its end, or stop it: `ff schedule backfill NAME --stop`",
        "budget_in_use" => "; delete those below it first, and let what holds it end",
        "reservation_not_found" => "; it was given back, or its time is over",
        "lane_not_found" => "; `ff lane list` shows those there are, `ff lane set` defines one",
        "worker_not_registered" => "; `ff worker list` shows those that are alive",
        "cursor_expired" => "; start anew with --after start",
        "store_unavailable" => "; the server cannot reach its store, try again",
        _ => "",
    }
}

/// The error with its causes; what the text before has said already is left out.
pub fn explained(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |said, cause| match said.as_str() {
        "" => cause,
        _ if said.contains(&cause) => said,
        _ => format!("{said}: {cause}"),
    })
}

/// The exit code of a command that failed: 2 when the command line is wrong, 4 for an unknown id, 1 otherwise.
pub fn exit_code(error: &anyhow::Error) -> ExitCode {
    if error.downcast_ref::<WrongUsage>().is_some() {
        return ExitCode::from(WRONG_USAGE);
    }
    error.downcast_ref::<Refused>().map_or(ExitCode::FAILURE, Refused::exit_code)
}

#[cfg(test)]
mod tests {
    use anyhow::anyhow;

    use super::*;

    #[test]
    fn causes_are_said_once() {
        let error =
            anyhow!("the disk is full").context("cannot write x: the disk is full; make room").context("cannot start");
        assert_eq!(explained(&error), "cannot start: cannot write x: the disk is full; make room");
    }

    #[test]
    fn a_refusal_says_its_code_and_what_to_do_next() {
        let refused = anyhow::Error::from(Refused::new(Problem::new(404, "lane_not_found", "there is no lane mail")));
        let text =
            "there is no lane mail (lane_not_found); `ff lane list` shows those there are, `ff lane set` defines one";
        assert_eq!(explained(&refused), text);
        assert_eq!(format!("{:?}", exit_code(&refused)), format!("{:?}", ExitCode::from(UNKNOWN_ID)));
    }
}
