//! Flags that once took milliseconds take durations now: `--delay-ms 500` still means `--delay 500ms`.

use std::ffi::OsString;

/// The arguments, with flags of the old spelling in the new one. What follows `--` belongs to another program.
pub fn modern(args: impl Iterator<Item = OsString>) -> Vec<OsString> {
    let (mut modern, mut args) = (Vec::new(), args);
    while let Some(arg) = args.next() {
        if arg == "--" {
            modern.push(arg);
            modern.extend(args);
            break;
        }
        let old = arg.to_str().and_then(|arg| arg.strip_prefix("--")).map(|arg| match arg.split_once('=') {
            Some((name, value)) => (name.to_owned(), Some(value.to_owned())),
            None => (arg.to_owned(), None),
        });
        match old.and_then(|(name, value)| Some((name.strip_suffix("-ms")?.to_owned(), value))) {
            None => modern.push(arg),
            Some((name, value)) => {
                let value = value.or_else(|| args.next().and_then(|value| value.into_string().ok()));
                let unit = |value: &str| !value.is_empty() && value.bytes().all(|byte| byte.is_ascii_digit());
                let value = value.map(|value| if unit(&value) { format!("{value}ms") } else { value });
                modern.push(format!("--{name}{}", value.map(|value| format!("={value}")).unwrap_or_default()).into());
            }
        }
    }
    modern
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_of_the_old_spelling_are_durations() {
        let modern = |args: &[&str]| -> Vec<String> {
            let made = modern(args.iter().map(OsString::from)).into_iter();
            made.map(|arg| arg.into_string().expect("text")).collect()
        };
        assert_eq!(modern(&["ff", "submit", "--delay-ms", "500"]), ["ff", "submit", "--delay=500ms"]);
        assert_eq!(modern(&["--delay-ms=5"]), ["--delay=5ms"]);
        assert_eq!(modern(&["--delay-ms=5m", "--kind", "k-ms"]), ["--delay=5m", "--kind", "k-ms"]);
        assert_eq!(modern(&["--wait-ms"]), ["--wait"]);
        assert_eq!(modern(&["worker", "--", "cmd", "--x-ms", "1"]), ["worker", "--", "cmd", "--x-ms", "1"]);
    }
}
