//! Which servers are too old to use, and which should be updated.

/// A server's product and version.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Version {
    pub(crate) valkey: bool,
    pub(crate) number: [u32; 3],
}

impl std::fmt::Display for Version {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let [major, minor, patch] = self.number;
        write!(f, "{} {major}.{minor}.{patch}", if self.valkey { "Valkey" } else { "Redis" })
    }
}

/// The releases of Valkey that fixed known vulnerabilities, newest line last.
const PATCHED: [[u32; 3]; 3] = [[8, 0, 7], [8, 1, 6], [9, 0, 2]];

impl Version {
    /// Parses `INFO server`. Valkey also reports the Redis version it is compatible with.
    pub(crate) fn of_info(info: &str) -> Option<Version> {
        let field =
            |name: &str| info.lines().find_map(|line| line.strip_prefix(name)?.strip_prefix(':')).map(str::trim);
        let (valkey, text) = match field("valkey_version") {
            Some(text) => (true, text),
            None => (field("server_name") == Some("valkey"), field("redis_version")?),
        };
        let mut parts = text.split(['.', '-']).map(|part| part.parse().unwrap_or(0));
        let number = [parts.next()?, parts.next().unwrap_or(0), parts.next().unwrap_or(0)];
        Some(Version { valkey, number })
    }

    /// Why this server cannot be used.
    pub(crate) fn refusal(&self) -> Option<String> {
        let least = if self.valkey { [7, 2, 0] } else { [7, 0, 0] };
        (self.number < least).then(|| format!("{self} is too old: at least Valkey 7.2 or Redis 7.0 is needed"))
    }

    /// Why this server should be updated.
    pub(crate) fn warning(&self) -> Option<String> {
        if !self.valkey {
            return None;
        }
        let line = [self.number[0], self.number[1]];
        let patched = PATCHED.into_iter().find(|patched| line <= [patched[0], patched[1]])?;
        let [major, minor, patch] = patched;
        (self.number < patched)
            .then(|| format!("{self} has known vulnerabilities: update it to {major}.{minor}.{patch} or later"))
    }

    /// True if the server can confirm that it flushed its log.
    pub(crate) fn has_waitaof(&self) -> bool {
        self.number >= [7, 2, 0]
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_refused_warned_about_or_fine() {
        let table = [
            ("redis_version:6.2.1", true, false),
            ("redis_version:7.0.15", false, false),
            ("redis_version:7.2.4\r\nserver_name:valkey\r\nvalkey_version:7.2.5", false, true),
            ("redis_version:7.2.4\r\nvalkey_version:8.0.1", false, true),
            ("redis_version:7.2.4\r\nvalkey_version:8.0.7", false, false),
            ("redis_version:7.2.4\r\nvalkey_version:8.1.5", false, true),
            ("redis_version:7.2.4\r\nvalkey_version:8.1.6", false, false),
            ("redis_version:7.2.4\r\nvalkey_version:9.0.1", false, true),
            ("redis_version:7.2.4\r\nvalkey_version:9.1.0-rc1", false, false),
        ];
        for (info, refused, warned) in table {
            let version = Version::of_info(info).unwrap();
            assert_eq!((version.refusal().is_some(), version.warning().is_some()), (refused, warned), "{version}");
        }
    }
}
