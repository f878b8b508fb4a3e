//! The command table: the exact subset of Valkey that the library may use, and the checks that every command passes.

use super::session::Session;
use super::{Failure, refused};

/// Commands that read. Both hosts share this list.
pub const READ_COMMANDS: &[&str] = &[
    "EXISTS",
    "GET",
    "HEXISTS",
    "HGET",
    "HGETALL",
    "HLEN",
    "HMGET",
    "MGET",
    "TIME",
    "XLEN",
    "XRANGE",
    "XREVRANGE",
    "ZCARD",
    "ZCOUNT",
    "ZMSCORE",
    "ZRANGE",
    "ZRANK",
    "ZSCORE",
];

/// Commands that write or publish. Both hosts share this list.
pub const WRITE_COMMANDS: &[&str] =
    &["DEL", "HDEL", "HSET", "INCRBY", "MSET", "SET", "SPUBLISH", "XADD", "XDEL", "XTRIM", "ZADD", "ZREM"];

/// Which arguments are keys.
enum Keys {
    None,
    First,
    All,
    /// Every second argument, starting with the first.
    Pairs,
}

type Run<'e> = fn(&mut Session<'e>, &[&[u8]]) -> Result<(), Failure>;

struct Command<'e> {
    run: Run<'e>,
    /// Number of arguments, including the name; a negative number is a minimum.
    arity: i32,
    writes: bool,
    keys: Keys,
}

fn lookup<'e>(name: &[u8]) -> Option<Command<'e>> {
    let command = |run: Run<'e>, arity, writes, keys| Some(Command { run, arity, writes, keys });
    let mut upper = [0u8; 16];
    let name_upper = upper.get_mut(..name.len())?;
    name_upper.copy_from_slice(name);
    name_upper.make_ascii_uppercase();
    match &*name_upper {
        b"TIME" => command(Session::time, 1, false, Keys::None),
        b"EXISTS" => command(Session::exists, -2, false, Keys::All),
        b"GET" => command(Session::get, 2, false, Keys::First),
        b"MGET" => command(Session::mget, -2, false, Keys::All),
        b"SET" => command(Session::set, 3, true, Keys::First),
        b"MSET" => command(Session::mset, -3, true, Keys::Pairs),
        b"INCRBY" => command(Session::incrby, 3, true, Keys::First),
        b"DEL" => command(Session::del, -2, true, Keys::All),
        b"SPUBLISH" => command(Session::spublish, 3, true, Keys::First),
        b"HGET" => command(Session::hget, 3, false, Keys::First),
        b"HMGET" => command(Session::hmget, -3, false, Keys::First),
        b"HGETALL" => command(Session::hgetall, 2, false, Keys::First),
        b"HLEN" => command(Session::hlen, 2, false, Keys::First),
        b"HEXISTS" => command(Session::hexists, 3, false, Keys::First),
        b"HSET" => command(Session::hset, -4, true, Keys::First),
        b"HDEL" => command(Session::hdel, -3, true, Keys::First),
        b"ZSCORE" => command(Session::zscore, 3, false, Keys::First),
        b"ZMSCORE" => command(Session::zmscore, -3, false, Keys::First),
        b"ZCARD" => command(Session::zcard, 2, false, Keys::First),
        b"ZCOUNT" => command(Session::zcount, 4, false, Keys::First),
        b"ZRANK" => command(Session::zrank, 3, false, Keys::First),
        b"ZRANGE" => command(Session::zrange, -4, false, Keys::First),
        b"ZADD" => command(Session::zadd, -4, true, Keys::First),
        b"ZREM" => command(Session::zrem, -3, true, Keys::First),
        b"XLEN" => command(Session::xlen, 2, false, Keys::First),
        b"XRANGE" => command(Session::xrange, -4, false, Keys::First),
        b"XREVRANGE" => command(Session::xrevrange, -4, false, Keys::First),
        b"XADD" => command(Session::xadd, -5, true, Keys::First),
        b"XDEL" => command(Session::xdel, -3, true, Keys::First),
        b"XTRIM" => command(Session::xtrim, -4, true, Keys::First),
        _ => None,
    }
}

impl Session<'_> {
    pub(super) fn dispatch(&mut self, args: &[&[u8]]) -> Result<(), Failure> {
        let Some(name) = args.first() else {
            return refused("ERR Please specify at least one argument for this redis.call() call");
        };
        let Some(command) = lookup(name) else {
            return self.violate(format!("ERR Unknown command called from script: {}", String::from_utf8_lossy(name)));
        };
        let given = args.len() as i32;
        if command.arity >= 0 && given != command.arity || given < -command.arity {
            return refused("ERR Wrong number of args calling command from script");
        }
        if command.writes && self.call.read_only {
            return self.violate("ERR Write commands are not allowed from read-only scripts.".to_owned());
        }
        if self.strict {
            let keys = match command.keys {
                Keys::None => &[],
                Keys::First => &args[1..2],
                Keys::All | Keys::Pairs => &args[1..],
            };
            let step = if matches!(command.keys, Keys::Pairs) { 2 } else { 1 };
            for key in keys.iter().step_by(step) {
                if !self.owns(key) {
                    let text = format!("ERR {} is not a key of {}", String::from_utf8_lossy(key), self.call.route);
                    return self.violate(text);
                }
            }
        }
        self.meet_fault(command.writes)?;
        (command.run)(self, args)?;
        self.wrote |= command.writes;
        Ok(())
    }

    /// True if the key carries the tag of the call's route. On the configuration route, the configuration record is the
    /// only key.
    fn owns(&self, key: &[u8]) -> bool {
        match &self.call.tag {
            None => key == self.call.route.to_string().as_bytes(),
            Some(tag) => {
                let Some(open) = key.iter().position(|b| *b == b'{') else {
                    return false;
                };
                let rest = &key[open..];
                rest.iter().position(|b| *b == b'}').is_some_and(|close| &rest[..=close] == tag.as_bytes())
            }
        }
    }
}

/// True if the argument is this word, ignoring case.
pub(super) fn is_word(argument: &[u8], word: &str) -> bool {
    argument.eq_ignore_ascii_case(word.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_lists_name_exactly_the_commands_of_the_table() {
        for (list, writes) in [(READ_COMMANDS, false), (WRITE_COMMANDS, true)] {
            assert!(list.is_sorted());
            for name in list {
                let command = lookup(name.as_bytes()).unwrap_or_else(|| panic!("{name} is not in the table"));
                assert_eq!(command.writes, writes, "{name}");
            }
        }
        assert!(lookup(b"EXPIRE").is_none());
        assert!(lookup(b"A-NAME-LONGER-THAN-ANY").is_none());
    }
}
