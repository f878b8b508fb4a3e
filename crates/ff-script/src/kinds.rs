//! The kinds of work that a worker takes, in the form in which every claim carries them.

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use crate::Bytes;

/// The kinds a worker takes; cheap to clone. A worker that takes every kind has none.
#[derive(Clone)]
pub struct Kinds(Arc<Named>);

struct Named {
    /// Sorted, each once.
    names: Vec<String>,
    packed: Vec<u8>,
    digest: u64,
}

impl Kinds {
    /// These kinds, in any order.
    #[must_use]
    pub fn of<I: IntoIterator<Item = S>, S: Into<String>>(kinds: I) -> Self {
        let mut names: Vec<String> = kinds.into_iter().map(Into::into).collect();
        names.sort_unstable();
        names.dedup();
        let mut packed = Vec::new();
        let count = u32::try_from(names.len()).expect("a worker names at most a thousand kinds");
        rmp::encode::write_array_len(&mut packed, count).expect("writing to memory does not fail");
        for name in &names {
            rmp::encode::write_str(&mut packed, name).expect("writing to memory does not fail");
        }
        let mut hasher = std::hash::DefaultHasher::new();
        packed.hash(&mut hasher);
        let digest = hasher.finish();
        Self(Arc::new(Named { names, packed, digest }))
    }

    /// The kinds that a claim carries; `None` for bytes that are no list of texts.
    #[must_use]
    pub fn unpacked(packed: &[u8]) -> Option<Self> {
        let value = rmpv::decode::read_value(&mut &packed[..]).ok()?;
        let names = value.as_array()?.iter().map(|name| name.as_str()).collect::<Option<Vec<_>>>()?;
        Some(Self::of(names))
    }

    /// True when the worker takes this kind.
    #[must_use]
    pub fn contains(&self, kind: &str) -> bool {
        self.0.names.binary_search_by(|name| name.as_str().cmp(kind)).is_ok()
    }

    /// The kinds, sorted.
    #[must_use]
    pub fn names(&self) -> &[String] {
        &self.0.names
    }

    /// As claims carry them: the library knows a set by these bytes.
    #[must_use]
    pub fn packed(&self) -> Bytes {
        Bytes(self.0.packed.clone())
    }
}

impl std::fmt::Debug for Kinds {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_list().entries(&self.0.names).finish()
    }
}

impl PartialEq for Kinds {
    fn eq(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.0, &other.0) || (self.0.digest == other.0.digest && self.0.packed == other.0.packed)
    }
}

impl Eq for Kinds {}

// A set with thousands of names is looked up with every claim: only its digest is hashed.
impl Hash for Kinds {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.digest.hash(state);
    }
}

impl PartialOrd for Kinds {
    fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Kinds {
    fn cmp(&self, other: &Self) -> std::cmp::Ordering {
        self.0.names.cmp(&other.0.names)
    }
}

/// A queue of a lane, by its name.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct QueueName<'a> {
    /// What its work requires, and whether it needs admission; see [`QueueName::is_plain`].
    pub class: &'a str,
    /// The kind of its work.
    pub kind: &'a str,
}

impl<'a> QueueName<'a> {
    /// The parts of a queue's name.
    #[must_use]
    pub fn of(name: &'a str) -> Self {
        let (class, kind) = name.split_once(':').unwrap_or((name, ""));
        Self { class, kind }
    }

    /// True when its work requires nothing of a worker.
    #[must_use]
    pub fn is_plain(&self) -> bool {
        matches!(self.class, "any" | "admit.any")
    }

    /// True when its work needs admission.
    #[must_use]
    pub fn needs_admission(&self) -> bool {
        self.class.starts_with("admit.")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_same_kinds_are_one_set_in_whatever_order_they_were_named() {
        let (one, other) = (Kinds::of(["b", "a", "b"]), Kinds::of(["a", "b"]));
        assert_eq!((&one, one.packed()), (&other, other.packed()));
        assert_eq!(one.names(), ["a", "b"]);
        assert!(one.contains("b") && !one.contains("c"));
        assert_ne!(one, Kinds::of(["a"]));
        assert_eq!((Kinds::unpacked(&one.packed()), Kinds::unpacked(&[0xc1])), (Some(one), None));
    }

    #[test]
    fn a_queue_is_named_by_its_class_and_its_kind() {
        let plain = QueueName::of("any:mail:send");
        assert_eq!(
            (plain.class, plain.kind, plain.is_plain(), plain.needs_admission()),
            ("any", "mail:send", true, false)
        );
        let admitted = QueueName::of("admit.0badf00d:x");
        assert_eq!((admitted.is_plain(), admitted.needs_admission()), (false, true));
    }
}
