//! Where the keys are. Servers and workers look in the same places, so on one machine they share them without a
//! setting.

use std::ffi::OsString;
use std::fmt;
use std::path::{Path, PathBuf};

use zeroize::Zeroizing;

use crate::{BadKeys, Error};

/// The name of the keys file in the data directory.
const FILE_NAME: &str = "keys";
/// The data directory's name below the directories of the user.
const DIRECTORY_NAME: &str = "flowfabric";

/// The places that a command line names; each is optional.
#[derive(Clone, Copy, Debug, Default)]
pub struct Places<'a> {
    /// The keys file (`--keys`).
    pub keys: Option<&'a Path>,
    /// The data directory (`--data-dir`).
    pub data_dir: Option<&'a Path>,
    /// The directory of the embedded store, if there is one.
    pub embedded: Option<&'a Path>,
}

/// Where a process gets its keys from.
///
/// Its `Debug` and `Display` name the place, never a key.
#[derive(Clone)]
pub enum Source {
    /// The text of `FF_KEYS`, which this process cannot change.
    Value(Zeroizing<String>),
    /// A named file (`--keys`, `FF_KEYS_FILE`): it must exist.
    File(PathBuf),
    /// The file in the data directory: created when it is needed.
    DataDir(PathBuf),
}

impl Source {
    /// Finds the keys: `--keys`, else `FF_KEYS` or `FF_KEYS_FILE`, else `keys` in the [`data_dir`].
    ///
    /// Fails if both variables are set. An empty variable counts as unset.
    pub fn find(places: &Places<'_>) -> Result<Self, Error> {
        Self::find_in(places, &|name| std::env::var_os(name))
    }

    /// As [`Source::find`], with another environment.
    pub fn find_in(places: &Places<'_>, env: &dyn Fn(&str) -> Option<OsString>) -> Result<Self, Error> {
        if let Some(path) = places.keys {
            return Ok(Source::File(path.to_owned()));
        }
        match (set(env, "FF_KEYS"), set(env, "FF_KEYS_FILE")) {
            (Some(_), Some(_)) => Err(Error::TwoPlaces),
            (Some(value), None) => {
                let bad = |_| Error::Malformed {
                    place: "FF_KEYS".to_owned(),
                    source: BadKeys { line: 1, problem: "is not text" },
                };
                Ok(Source::Value(Zeroizing::new(value.into_string().map_err(bad)?)))
            }
            (None, Some(path)) => Ok(Source::File(path.into())),
            (None, None) => Ok(Source::DataDir(data_dir_in(places, env)?.join(FILE_NAME))),
        }
    }

    /// The file; `None` for a value.
    #[must_use]
    pub fn path(&self) -> Option<&Path> {
        match self {
            Source::Value(_) => None,
            Source::File(path) | Source::DataDir(path) => Some(path),
        }
    }
}

impl fmt::Display for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Value(_) => f.write_str("FF_KEYS"),
            Source::File(path) | Source::DataDir(path) => path.display().fmt(f),
        }
    }
}

impl fmt::Debug for Source {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Source::Value(_) => f.write_str("Value(redacted)"),
            Source::File(path) => write!(f, "File({path:?})"),
            Source::DataDir(path) => write!(f, "DataDir({path:?})"),
        }
    }
}

/// The data directory: the embedded store's, else `--data-dir` or `FF_DATA_DIR`, else `$XDG_STATE_HOME/flowfabric`,
/// else `~/.local/state/flowfabric`. This function does not create it.
pub fn data_dir(places: &Places<'_>) -> Result<PathBuf, Error> {
    data_dir_in(places, &|name| std::env::var_os(name))
}

fn data_dir_in(places: &Places<'_>, env: &dyn Fn(&str) -> Option<OsString>) -> Result<PathBuf, Error> {
    if let Some(directory) = places.embedded.or(places.data_dir) {
        return Ok(directory.to_owned());
    }
    if let Some(directory) = set(env, "FF_DATA_DIR") {
        return Ok(directory.into());
    }
    // The specification requires that a relative path here is ignored.
    if let Some(state) = set(env, "XDG_STATE_HOME").map(PathBuf::from).filter(|path| path.is_absolute()) {
        return Ok(state.join(DIRECTORY_NAME));
    }
    let home = set(env, "HOME").ok_or(Error::NoDataDir)?;
    Ok(PathBuf::from(home).join(".local").join("state").join(DIRECTORY_NAME))
}

fn set(env: &dyn Fn(&str) -> Option<OsString>, name: &str) -> Option<OsString> {
    env(name).filter(|value| !value.is_empty())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn find(places: Places<'_>, variables: &[(&str, &str)]) -> Result<String, String> {
        let env = |name: &str| {
            variables.iter().find(|(variable, _)| *variable == name).map(|(_, value)| OsString::from(value))
        };
        let source = Source::find_in(&places, &env);
        source.map(|source| format!("{source:?}")).map_err(|error| error.to_string())
    }

    #[test]
    fn the_places_are_looked_at_in_order() {
        let nothing = Places::default();
        let data_dir = Places { data_dir: Some(Path::new("/data")), ..nothing };
        let embedded = Places { embedded: Some(Path::new("/store")), ..data_dir };
        let keys = Places { keys: Some(Path::new("/my/keys")), ..embedded };
        let home = ("HOME", "/home/ann");
        let xdg = ("XDG_STATE_HOME", "/state");
        let ff_data_dir = ("FF_DATA_DIR", "/ff");
        let file = ("FF_KEYS_FILE", "/etc/keys");
        let value = ("FF_KEYS", "secret");
        for (places, variables, found) in [
            (keys, vec![home, xdg, ff_data_dir, file, value], r#"File("/my/keys")"#),
            (embedded, vec![home, value], "Value(redacted)"),
            (embedded, vec![home, file], r#"File("/etc/keys")"#),
            (embedded, vec![home, ff_data_dir], r#"DataDir("/store/keys")"#),
            (data_dir, vec![home, ff_data_dir], r#"DataDir("/data/keys")"#),
            (nothing, vec![home, xdg, ff_data_dir], r#"DataDir("/ff/keys")"#),
            (nothing, vec![home, xdg], r#"DataDir("/state/flowfabric/keys")"#),
            (nothing, vec![home], r#"DataDir("/home/ann/.local/state/flowfabric/keys")"#),
            (nothing, vec![home, ("XDG_STATE_HOME", "state")], r#"DataDir("/home/ann/.local/state/flowfabric/keys")"#),
            (
                nothing,
                vec![home, ("FF_KEYS", ""), ("FF_DATA_DIR", "")],
                r#"DataDir("/home/ann/.local/state/flowfabric/keys")"#,
            ),
        ] {
            assert_eq!(find(places, &variables), Ok(found.to_owned()), "{places:?} {variables:?}");
        }
        assert_eq!(
            find(nothing, &[file, value]),
            Err("both FF_KEYS and FF_KEYS_FILE are set; set one of them".to_owned())
        );
        assert_eq!(find(nothing, &[]), Err("cannot tell where to keep the keys: set FF_DATA_DIR, or HOME".to_owned()));
    }
}
