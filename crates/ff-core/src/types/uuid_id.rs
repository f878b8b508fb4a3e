//! Ids that are UUIDs; their last two bytes are the partition seed.

use std::fmt;
use std::str::FromStr;

use serde::{Deserialize, Serialize};
use uuid::Uuid;

/// The text is not a UUID.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("invalid {what}: {value:?} is not a UUID")]
pub struct InvalidId {
    /// The kind of the id, e.g. `execution id`.
    pub what: &'static str,
    pub value: String,
}

macro_rules! uuid_id {
    ($(#[$meta:meta])* $name:ident as $what:literal) => {
        $(#[$meta])*
        ///
        /// Any UUID of a client is valid. There is no default; `mint` creates a fresh id.
        #[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(Uuid);

        impl $name {
            /// A fresh id: time-ordered (v7), with a random partition seed.
            #[must_use]
            pub fn mint() -> Self {
                Self(Uuid::now_v7())
            }

            /// A fresh id in the same partition as every other id with this seed.
            #[must_use]
            pub fn mint_with_seed(seed: u16) -> Self {
                let mut bytes = *Uuid::now_v7().as_bytes();
                bytes[14..16].copy_from_slice(&seed.to_be_bytes());
                Self(Uuid::from_bytes(bytes))
            }

            #[must_use]
            pub const fn from_uuid(uuid: Uuid) -> Self {
                Self(uuid)
            }

            #[must_use]
            pub const fn as_uuid(&self) -> &Uuid {
                &self.0
            }

            /// The last two bytes, which decide the partition.
            #[must_use]
            pub const fn seed(&self) -> u16 {
                let bytes = self.0.as_bytes();
                u16::from_be_bytes([bytes[14], bytes[15]])
            }

            /// The partition of this id among `count`, which is never 0: [`crate::PartitionConfig`] checks it.
            #[must_use]
            pub const fn partition(&self, count: u16) -> u16 {
                self.seed() % count
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                self.0.as_hyphenated().fmt(f)
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!(stringify!($name), "({})"), self.0.as_hyphenated())
            }
        }

        impl FromStr for $name {
            type Err = InvalidId;
            fn from_str(text: &str) -> Result<Self, InvalidId> {
                match Uuid::try_parse(text) {
                    Ok(uuid) => Ok(Self(uuid)),
                    Err(_) => Err(InvalidId { what: $what, value: text.to_owned() }),
                }
            }
        }

        impl From<Uuid> for $name {
            fn from(uuid: Uuid) -> Self {
                Self(uuid)
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::PartialSchema for $name {
            fn schema() -> utoipa::openapi::RefOr<utoipa::openapi::schema::Schema> {
                crate::openapi::uuid()
            }
        }

        #[cfg(feature = "openapi")]
        impl utoipa::ToSchema for $name {}
    };
}

uuid_id!(/// Names one execution.
    ExecutionId as "execution id");
uuid_id!(/// Names one attempt at an execution.
    AttemptId as "attempt id");
uuid_id!(/// Names one lease on an execution.
    LeaseId as "lease id");
uuid_id!(/// Names a flow; its members carry the flow's seed.
    FlowId as "flow id");
uuid_id!(/// Names an edge between two members of a flow.
    EdgeId as "edge id");
uuid_id!(/// Names a budget; a budget tree shares its root's seed.
    BudgetId as "budget id");
uuid_id!(/// Names a quota policy.
    QuotaPolicyId as "quota id");
uuid_id!(/// Names a waitpoint, the address of signals.
    WaitpointId as "waitpoint id");
uuid_id!(/// Names one suspension of an execution.
    SuspensionId as "suspension id");
uuid_id!(/// Names one delivered signal.
    SignalId as "signal id");

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_minted_id_is_time_ordered_and_new() {
        let a = ExecutionId::mint();
        let b = ExecutionId::mint();
        assert_ne!(a, b);
        assert_eq!(a.as_uuid().get_version_num(), 7);
    }

    #[test]
    fn text_is_canonical_and_any_uuid_spelling_is_read() {
        let canonical = "0192a7c4-5b1e-7abc-8def-00112233aabb";
        for spelling in [
            canonical.to_owned(),
            canonical.to_uppercase(),
            canonical.replace('-', ""),
            format!("{{{canonical}}}"),
            format!("urn:uuid:{canonical}"),
        ] {
            let id: ExecutionId = spelling.parse().unwrap();
            assert_eq!(id.to_string(), canonical, "read from {spelling}");
        }
        assert_eq!("nope".parse::<FlowId>().unwrap_err().to_string(), "invalid flow id: \"nope\" is not a UUID");
    }

    #[test]
    fn json_is_the_canonical_text() {
        let id: LeaseId = "0192a7c4-5b1e-7abc-8def-00112233aabb".parse().unwrap();
        let json = serde_json::to_string(&id).unwrap();
        assert_eq!(json, "\"0192a7c4-5b1e-7abc-8def-00112233aabb\"");
        assert_eq!(serde_json::from_str::<LeaseId>(&json).unwrap(), id);
    }

    proptest! {
        #[test]
        fn the_partition_comes_from_the_last_two_bytes(bytes: [u8; 16], count in 1u16..) {
            let id = ExecutionId::from_uuid(Uuid::from_bytes(bytes));
            let seed = u16::from_be_bytes([bytes[14], bytes[15]]);
            prop_assert_eq!(id.seed(), seed);
            prop_assert_eq!(id.partition(count), seed % count);
        }

        #[test]
        fn ids_minted_with_one_seed_share_a_partition(seed: u16, count in 1u16..) {
            let member = ExecutionId::mint_with_seed(seed);
            prop_assert_eq!(member.seed(), seed);
            prop_assert_eq!(member.partition(count), FlowId::mint_with_seed(seed).partition(count));
            prop_assert_eq!(member.as_uuid().get_version_num(), 7);
        }
    }
}
