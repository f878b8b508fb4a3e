//! Ids that are short names chosen by people: lanes, namespaces, workers.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};

const LEN_MAX: usize = 64;

/// The text is not a valid name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what}: {value:?} must be 1 to {LEN_MAX} of A-Z a-z 0-9 . _ - and not dots only")]
pub struct InvalidText {
    /// The kind of the name, e.g. `lane`.
    pub what: &'static str,
    pub value: String,
}

/// True if a namespace, a lane, a worker or an instance can have this name. Names of dots only are invalid, because
/// HTTP clients resolve `.` and `..` in a path.
#[must_use]
pub fn is_name(text: &str) -> bool {
    (1..=LEN_MAX).contains(&text.len())
        && text.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-'))
        && text.bytes().any(|byte| byte != b'.')
}

macro_rules! text_id {
    ($(#[$meta:meta])* $name:ident as $what:literal) => {
        $(#[$meta])*
        ///
        /// A name is `[A-Za-z0-9._-]{1,64}`. `new` does not check it. `try_new` and parsing do, and the engine refuses
        /// an invalid one.
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize)]
        #[serde(transparent)]
        pub struct $name(String);

        impl $name {
            /// The name, unchecked.
            #[must_use]
            pub fn new(text: impl Into<String>) -> Self {
                Self(text.into())
            }

            /// The name, if it is valid.
            pub fn try_new(text: impl Into<String>) -> Result<Self, InvalidText> {
                let text = text.into();
                if is_name(&text) { Ok(Self(text)) } else { Err(InvalidText { what: $what, value: text }) }
            }

            /// The text of the name.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({:?})"), self.0)
            }
        }

        impl FromStr for $name {
            type Err = InvalidText;
            fn from_str(text: &str) -> Result<Self, InvalidText> {
                Self::try_new(text)
            }
        }

        impl AsRef<str> for $name {
            fn as_ref(&self) -> &str {
                &self.0
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> String {
                name.0
            }
        }

        impl<'de> Deserialize<'de> for $name {
            fn deserialize<D: serde::Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
                Self::try_new(String::deserialize(deserializer)?).map_err(serde::de::Error::custom)
            }
        }
    };
}

text_id!(/// Names a lane, the queue an execution waits in.
    LaneId as "lane");
text_id!(/// Names a namespace, which owns lanes, keys and executions.
    Namespace as "namespace");
text_id!(/// Names a kind of worker; many processes may share it.
    WorkerId as "worker id");
text_id!(/// Names one worker process.
    WorkerInstanceId as "worker instance id");

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_short_plain_names_pass_the_check() {
        for good in ["default", "a", "A.b_c-9", &"x".repeat(64)] {
            assert_eq!(LaneId::try_new(good).unwrap().as_str(), good);
        }
        for bad in ["", " ", "a/b", "ä", "a,b", "a\n", ".", "..", &"x".repeat(65)] {
            assert!(LaneId::try_new(bad).is_err(), "{bad:?}");
        }
        assert_eq!(
            Namespace::try_new("a b").unwrap_err().to_string(),
            "invalid namespace: \"a b\" must be 1 to 64 of A-Z a-z 0-9 . _ - and not dots only"
        );
    }

    #[test]
    fn new_takes_anything_and_json_does_not() {
        assert_eq!(WorkerId::new("a b").as_str(), "a b");
        assert!(serde_json::from_str::<WorkerId>("\"a b\"").is_err());
        assert_eq!(serde_json::from_str::<WorkerId>("\"ab\"").unwrap(), WorkerId::new("ab"));
    }
}
