//! The names of holder sets: `lane:<namespace>/<lane>`, `quota:<id>:<digest of the key>`, `budget:<id>`.

use ff_core::types::{BudgetId, QuotaPolicyId};

/// A holder set by its kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HolderSet<'a> {
    /// The slots of a lane.
    Lane {
        /// The lane as `<namespace>/<lane>`.
        path: &'a str,
    },
    /// A key of a quota.
    Quota {
        id: QuotaPolicyId,
        /// The digest of the key.
        digest: &'a str,
    },
    Budget {
        id: BudgetId,
    },
}

impl<'a> HolderSet<'a> {
    /// Parses a name. `None` if its kind is unknown.
    #[must_use]
    pub fn read(set: &'a str) -> Option<Self> {
        let (kind, name) = set.split_once(':')?;
        match kind {
            "lane" => Some(Self::Lane { path: name }),
            "quota" => {
                let (id, digest) = name.split_once(':')?;
                Some(Self::Quota { id: id.parse().ok()?, digest })
            }
            "budget" => Some(Self::Budget { id: name.parse().ok()? }),
            _ => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_kind_is_read_and_others_are_not() {
        let id = "0190a5e2-0000-7000-8000-0000000000ff";
        assert_eq!(HolderSet::read("lane:a/b"), Some(HolderSet::Lane { path: "a/b" }));
        let quota = format!("quota:{id}:13fbd79c3d390e5d6585");
        let expected = HolderSet::Quota { id: id.parse().unwrap(), digest: "13fbd79c3d390e5d6585" };
        assert_eq!(HolderSet::read(&quota), Some(expected));
        assert_eq!(HolderSet::read(&format!("budget:{id}")), Some(HolderSet::Budget { id: id.parse().unwrap() }));
        for wrong in ["probe", "quota:x:y", "budget:", "moon:1"] {
            assert_eq!(HolderSet::read(wrong), None, "{wrong}");
        }
    }
}
