//! Converts Lua's errors. They hold Lua values and cannot cross threads, so only their text is kept.

/// A result of Lua.
pub trait LuaResult<T> {
    /// The same result with the error's text.
    fn plain(self) -> anyhow::Result<T>;
}

impl<T> LuaResult<T> for mlua::Result<T> {
    fn plain(self) -> anyhow::Result<T> {
        self.map_err(|error| anyhow::anyhow!("{error}"))
    }
}
