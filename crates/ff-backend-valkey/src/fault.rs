//! How to react to a failed attempt: retry, load the library, or give up with a reason.

use ff_script::HostError;
use redis::{ErrorKind, RedisError};

/// Why one attempt at one node failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Fault {
    /// The connection is lost or silent. The attempt may have been executed.
    Lost(String),
    /// This node cannot serve the call now, or another node must serve it.
    Elsewhere(String),
    /// The node has no such function.
    NoFunction,
    /// The store has no room.
    Full(String),
    /// The store refuses this program until its setup changes.
    Refused(String),
    Raised(String),
    /// The store returned something that is not a valid reply.
    Corrupt(String),
}

/// Error codes after which the same call may succeed a little later or at another node.
const PASSING: [&str; 10] =
    ["TRYAGAIN", "ASK", "MOVED", "CLUSTERDOWN", "LOADING", "READONLY", "BUSY", "MASTERDOWN", "NOREPLICAS", "UNBLOCKED"];

/// Texts of a raise that mean the same: inside a function, the code of a refused command is lost.
const PASSING_INSIDE: [&str; 3] = [
    "undeclared keys were accessed during rehashing of the slot",
    "Script attempted to access a non local key in a cluster node",
    "while the cluster is down",
];

impl Fault {
    /// Classifies an error reply.
    pub(crate) fn of_reply(code: &str, detail: &str) -> Fault {
        let text = format!("{code} {detail}");
        if code == "ERR" && detail == "Function not found" {
            return Fault::NoFunction;
        }
        // A raise contains the function's name, so a code in its text may belong to an inner command.
        let raised = detail.contains("script: ");
        let passing = PASSING.contains(&code)
            // A confirmation reached a primary that was just demoted.
            || detail.contains("cannot be used with replica instances")
            || raised
                && (PASSING_INSIDE.iter().any(|phrase| detail.contains(phrase))
                    || PASSING.iter().any(|word| has_word(detail, word)));
        if passing {
            return Fault::Elsewhere(text);
        }
        match code {
            "OOM" => Fault::Full(text),
            "MISCONF" if detail.contains("No space left") => Fault::Full(text),
            "MISCONF" => Fault::Elsewhere(text),
            "NOPERM" | "NOAUTH" | "WRONGPASS" => Fault::Refused(text),
            _ if raised && has_word(detail, "OOM") => Fault::Full(text),
            _ if raised && detail.contains("ACL failure") => Fault::Refused(text),
            _ if detail.starts_with("unknown command") => {
                Fault::Refused(format!("{text}; at least Valkey 7.2 or Redis 7.0 is needed"))
            }
            _ => Fault::Raised(text),
        }
    }

    /// Classifies what an operation of a list raised.
    pub(crate) fn of_raise(text: String) -> Fault {
        match Fault::of_reply("ERR", &format!("{text} script: ")) {
            Fault::Raised(_) => Fault::Raised(text),
            Fault::Elsewhere(_) => Fault::Elsewhere(text),
            other => other,
        }
    }

    /// Classifies an error of the client: no connection, a lost one, wrong credentials.
    pub(crate) fn of_client(error: &RedisError) -> Fault {
        let text = error.to_string();
        match error.kind() {
            ErrorKind::AuthenticationFailed | ErrorKind::InvalidClientConfig => Fault::Refused(text),
            ErrorKind::Server(_) | ErrorKind::Extension => {
                Fault::of_reply(error.code().unwrap_or("ERR"), error.detail().unwrap_or_default())
            }
            ErrorKind::UnexpectedReturnType => Fault::Corrupt(text),
            _ => Fault::Lost(text),
        }
    }

    /// True if the server is a replica, perhaps only since a moment ago.
    pub(crate) fn is_read_only(&self) -> bool {
        matches!(self, Fault::Elsewhere(detail) if detail.starts_with("READONLY"))
    }

    /// The error for a caller after the last retry.
    pub(crate) fn into_error(self, function: &str) -> HostError {
        match self {
            Fault::Lost(detail) | Fault::Elsewhere(detail) => HostError::Unavailable { detail },
            Fault::NoFunction => {
                HostError::Refused { detail: format!("the library on the server has no function {function}") }
            }
            Fault::Full(detail) => HostError::Full { detail },
            Fault::Refused(detail) => HostError::Refused { detail },
            Fault::Raised(detail) => HostError::Raised { function: function.to_owned(), detail },
            Fault::Corrupt(detail) => HostError::Corrupt { detail },
        }
    }
}

fn has_word(text: &str, word: &str) -> bool {
    text.split(|c: char| !c.is_ascii_alphanumeric()).any(|part| part == word)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn error_replies_mean_what_the_server_does() {
        let inside = " script: ff_x, on @user_function:1.";
        type Row<'a> = (&'a str, String, fn(&Fault) -> bool);
        let table: Vec<Row> = vec![
            ("ERR", "Function not found".into(), |f| *f == Fault::NoFunction),
            ("MOVED", "17 127.0.0.1:7000".into(), |f| matches!(f, Fault::Elsewhere(_))),
            ("ASK", "17 127.0.0.1:7000".into(), |f| matches!(f, Fault::Elsewhere(_))),
            ("TRYAGAIN", "Multiple keys request".into(), |f| matches!(f, Fault::Elsewhere(_))),
            ("BUSY", "server is busy".into(), |f| matches!(f, Fault::Elsewhere(_))),
            ("ERR", "WAIT cannot be used with replica instances. Please also note".into(), |f| {
                matches!(f, Fault::Elsewhere(_))
            }),
            ("UNBLOCKED", "force unblock from blocking operation, instance state changed".into(), |f| {
                matches!(f, Fault::Elsewhere(_))
            }),
            ("ERR", format!("-TRYAGAIN Multiple keys request{inside}"), |f| matches!(f, Fault::Elsewhere(_))),
            ("ERR", format!("Script attempted to access a non local key in a cluster node{inside}"), |f| {
                matches!(f, Fault::Elsewhere(_))
            }),
            (
                "ERR",
                format!(
                    "Unable to execute command 'exists' in script because undeclared keys were accessed during rehashing of the slot{inside}"
                ),
                |f| matches!(f, Fault::Elsewhere(_)),
            ),
            ("OOM", "command not allowed".into(), |f| matches!(f, Fault::Full(_))),
            ("NOPERM", "User x has no permissions".into(), |f| matches!(f, Fault::Refused(_))),
            ("ERR", format!("user_function:3: boom{inside}"), |f| matches!(f, Fault::Raised(_))),
            ("WRONGTYPE", format!("Operation against a key{inside}"), |f| matches!(f, Fault::Raised(_))),
        ];
        for (code, detail, expected) in table {
            let fault = Fault::of_reply(code, &detail);
            assert!(expected(&fault), "{code} {detail} is {fault:?}");
        }
    }
}
