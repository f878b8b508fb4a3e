//! The only unsafe module: Lua's C interface where the safe one is too slow, and the opening of the memory map.
//!
//! **Invariant:** a frame from which Lua may jump (`lua_error`) holds nothing to drop. Every entry point below does its
//! work in ordinary Rust, leaves its result on the Lua stack, and only then returns or raises. Memory errors do not
//! jump: without a memory limit, mlua's allocator aborts when memory runs out.
#![expect(
    unsafe_code,
    reason = "Lua's C interface and the memory map are unsafe by nature; everything else builds on this module"
)]

use std::cell::Cell;
use std::os::raw::c_int;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::ptr;

use heed::{Env, EnvFlags, EnvOpenOptions, WithoutTls};
use mlua::ffi::{self, lua_State};
use mlua::{Function, Lua};

use crate::store::Session;
use crate::store::number::format_double;
use crate::store::reply::Token;

/// Opens the memory map of a directory that this process has locked.
pub(crate) fn open_environment(directory: &Path, map_size: usize, relaxed: bool) -> heed::Result<Env<WithoutTls>> {
    const PAGE: usize = 1 << 16;
    let mut options = EnvOpenOptions::new().read_txn_without_tls();
    options.map_size(map_size.max(PAGE) / PAGE * PAGE).max_dbs(8).max_readers(126);
    // SAFETY: the directory lock keeps other processes out, and nothing in this process changes the file except through
    // LMDB.
    unsafe {
        if relaxed {
            options.flags(EnvFlags::NO_SYNC | EnvFlags::NO_META_SYNC);
        }
        options.open(directory)
    }
}

thread_local! {
    /// The session that `redis.call` uses; null outside of a call and while a command runs.
    static SESSION: Cell<*mut Session<'static>> = const { Cell::new(ptr::null_mut()) };
}

/// Runs `f` with `session` as the target of `redis.call` and `redis.commit`.
pub(crate) fn enter<R>(session: &mut Session<'_>, f: impl FnOnce() -> R) -> R {
    struct Leave;
    impl Drop for Leave {
        fn drop(&mut self) {
            SESSION.set(ptr::null_mut());
        }
    }
    // The lifetime is erased only while `f` runs: `Leave` clears the pointer on every exit.
    SESSION.set(ptr::from_mut(session).cast());
    let _leave = Leave;
    f()
}

/// Runs `f` on the current session. `None` outside of a call.
fn with_session<R>(f: impl FnOnce(&mut Session<'static>) -> R) -> Option<R> {
    let session = SESSION.replace(ptr::null_mut());
    if session.is_null() {
        return None;
    }
    // SAFETY: `enter` holds the only other reference and does not use it. The pointer was taken out, so no second
    // reference is created here.
    let result = f(unsafe { &mut *session });
    SESSION.set(session);
    Some(result)
}

const NO_SESSION: &str = "ERR redis.call and redis.commit can only run inside a function call";

/// The functions of the `redis` and `cmsgpack` tables.
pub(crate) struct Natives {
    pub call: Function,
    pub pcall: Function,
    pub commit: Function,
    pub begin: Function,
    pub settle: Function,
    pub pack: Function,
    pub unpack: Function,
    pub unpack_limit: Function,
}

pub(crate) fn natives(lua: &Lua) -> mlua::Result<Natives> {
    // SAFETY: each function obeys the invariant above and uses only the arguments Lua gives it.
    unsafe {
        Ok(Natives {
            call: lua.create_c_function(lua_call)?,
            pcall: lua.create_c_function(lua_pcall)?,
            commit: lua.create_c_function(lua_commit)?,
            begin: lua.create_c_function(lua_begin)?,
            settle: lua.create_c_function(lua_settle)?,
            pack: lua.create_c_function(lua_pack)?,
            unpack: lua.create_c_function(lua_unpack)?,
            unpack_limit: lua.create_c_function(lua_unpack_limit)?,
        })
    }
}

/// Pushes a string.
unsafe fn push_bytes(state: *mut lua_State, bytes: &[u8]) {
    // SAFETY: the caller has room for one value.
    unsafe { ffi::lua_pushlstring_(state, bytes.as_ptr().cast(), bytes.len()) };
}

/// The bytes of a command, borrowed from Lua values. The caller of `take` guarantees the lifetime: the values stay on
/// the stack, or in a table on the stack, until the arguments are cleared.
#[derive(Default)]
struct Arguments {
    pieces: Vec<&'static [u8]>,
    /// Printed numbers, boxed so that they do not move.
    numbers: Vec<Box<str>>,
}

impl Arguments {
    fn clear(&mut self) {
        self.pieces.clear();
        self.numbers.clear();
    }

    /// Takes the value at `index`.
    unsafe fn take(&mut self, state: *mut lua_State, index: c_int) -> Result<(), &'static str> {
        // SAFETY: the index is valid; a string is not converted, so its bytes stay where they are.
        unsafe {
            match ffi::lua_type(state, index) {
                ffi::LUA_TSTRING => {
                    let mut len = 0;
                    let bytes = ffi::lua_tolstring(state, index, &mut len);
                    self.pieces.push(std::slice::from_raw_parts(bytes.cast(), len));
                }
                ffi::LUA_TNUMBER => {
                    let text = format_double(ffi::lua_tonumber(state, index)).into_boxed_str();
                    self.pieces.push(std::slice::from_raw_parts(text.as_ptr(), text.len()));
                    self.numbers.push(text);
                }
                _ => return Err("ERR Lua redis lib command arguments must be strings or integers"),
            }
        }
        Ok(())
    }

    /// Empty arguments for the duration of `f`; they reuse the memory of earlier commands.
    fn reused<R>(f: impl FnOnce(&mut Arguments) -> R) -> R {
        thread_local! {
            static SPARE: Cell<Option<Arguments>> = const { Cell::new(None) };
        }
        let mut arguments = SPARE.take().unwrap_or_default();
        let result = f(&mut arguments);
        arguments.clear();
        SPARE.set(Some(arguments));
        result
    }
}

/// Runs a command. A panic is caught here, because it must not cross Lua's frames.
fn run_guarded(session: &mut Session<'static>, args: &[&[u8]]) -> Result<(), String> {
    match catch_unwind(AssertUnwindSafe(|| session.run(args))) {
        Ok(result) => result,
        Err(_) => {
            session.lose_to_panic();
            Err("ERR the store panicked".to_owned())
        }
    }
}

/// Runs the command on the stack and pushes its reply.
unsafe fn call_on_stack(state: *mut lua_State) -> Result<(), String> {
    // SAFETY: all indices are between 1 and the top; the values stay on the stack until this function returns.
    Arguments::reused(|arguments| unsafe {
        for index in 1..=ffi::lua_gettop(state) {
            arguments.take(state, index)?;
        }
        with_session(|session| {
            run_guarded(session, &arguments.pieces)?;
            push_reply(state, &session.reply.tokens, &session.reply.bytes)
        })
        .unwrap_or_else(|| Err(NO_SESSION.to_owned()))
    })
}

/// Pushes a reply as Valkey converts it: nil is false, a status is a table.
unsafe fn push_reply(state: *mut lua_State, tokens: &[Token], bytes: &[u8]) -> Result<(), String> {
    // SAFETY: the deepest reply is three arrays deep; room for it is asked for first.
    unsafe {
        if ffi::lua_checkstack(state, 16) == 0 {
            return Err("ERR Lua stack overflow".to_owned());
        }
        let mut rest = tokens.iter();
        push_value(state, &mut rest, bytes);
    }
    Ok(())
}

unsafe fn push_value(state: *mut lua_State, tokens: &mut std::slice::Iter<'_, Token>, bytes: &[u8]) {
    // SAFETY: `push_reply` made room.
    unsafe {
        match tokens.next() {
            None | Some(Token::Nil) => ffi::lua_pushboolean(state, 0),
            Some(Token::Integer(n)) => ffi::lua_pushnumber(state, *n as f64),
            Some(Token::Bulk { at, len }) => push_bytes(state, &bytes[*at..*at + *len]),
            Some(Token::Ok) => {
                ffi::lua_createtable(state, 0, 1);
                push_bytes(state, b"ok");
                push_bytes(state, b"OK");
                ffi::lua_rawset(state, -3);
            }
            Some(Token::Array(len)) => {
                ffi::lua_createtable(state, *len as c_int, 0);
                for position in 1..=*len {
                    push_value(state, tokens, bytes);
                    ffi::lua_rawseti(state, -2, position as _);
                }
            }
        }
    }
}

/// `redis.call(command, ...)`
unsafe extern "C-unwind" fn lua_call(state: *mut lua_State) -> c_int {
    // SAFETY: Lua guarantees a valid state with 20 free slots; nothing is alive when lua_error jumps.
    unsafe {
        let raised = match call_on_stack(state) {
            Ok(()) => false,
            Err(text) => {
                push_bytes(state, text.as_bytes());
                true
            }
        };
        if raised { ffi::lua_error(state) } else { 1 }
    }
}

/// `redis.pcall(command, ...)`: a refusal is returned as a table with `err`.
unsafe extern "C-unwind" fn lua_pcall(state: *mut lua_State) -> c_int {
    // SAFETY: as in `lua_call`; this function never jumps.
    unsafe {
        if let Err(text) = call_on_stack(state) {
            ffi::lua_createtable(state, 0, 1);
            push_bytes(state, b"err");
            push_bytes(state, text.as_bytes());
            ffi::lua_rawset(state, -3);
        }
    }
    1
}

/// Runs all commands of the plan on the stack, or none.
unsafe fn commit_on_stack(state: *mut lua_State) -> Result<usize, String> {
    // SAFETY: the plan stays on the stack and holds its commands, which hold their strings; raw access runs no Lua code.
    Arguments::reused(|arguments| unsafe {
        if ffi::lua_type(state, 1) != ffi::LUA_TTABLE {
            return Err("ERR redis.commit takes an array of commands".to_owned());
        }
        let count = ffi::lua_rawlen(state, 1);
        with_session(|session| {
            let mark = session.mark();
            let mut run = |position: usize| -> Result<(), String> {
                ffi::lua_rawgeti(state, 1, position as _);
                if ffi::lua_type(state, -1) != ffi::LUA_TTABLE {
                    return Err(format!("ERR command {position} of the plan is not an array"));
                }
                arguments.clear();
                for piece in 1..=ffi::lua_rawlen(state, -1) {
                    ffi::lua_rawgeti(state, -1, piece as _);
                    arguments.take(state, -1)?;
                    ffi::lua_settop(state, -2);
                }
                run_guarded(session, &arguments.pieces)?;
                ffi::lua_settop(state, -2);
                Ok(())
            };
            let result = (1..=count).try_for_each(&mut run);
            ffi::lua_settop(state, 1);
            if result.is_err() {
                session.roll_back_to(mark);
            }
            result.map(|()| count)
        })
        .unwrap_or_else(|| Err(NO_SESSION.to_owned()))
    })
}

/// `redis.commit(plan)`: returns how many commands ran.
unsafe extern "C-unwind" fn lua_commit(state: *mut lua_State) -> c_int {
    // SAFETY: as in `lua_call`.
    unsafe {
        let raised = match commit_on_stack(state) {
            Ok(count) => {
                ffi::lua_pushnumber(state, count as f64);
                false
            }
            Err(text) => {
                push_bytes(state, text.as_bytes());
                true
            }
        };
        if raised { ffi::lua_error(state) } else { 1 }
    }
}

/// `redis.begin(place, route)`: begins the operation at this position of the list, on this route.
unsafe extern "C-unwind" fn lua_begin(state: *mut lua_State) -> c_int {
    // SAFETY: as in `lua_call`; the string stays on the stack meanwhile.
    unsafe {
        let place = ffi::lua_tonumber(state, 1) as usize;
        let mut len = 0;
        let bytes = ffi::lua_tolstring(state, 2, &mut len);
        let route = if bytes.is_null() { &[] } else { std::slice::from_raw_parts(bytes.cast(), len) };
        let route = std::str::from_utf8(route).unwrap_or_default();
        let begun = with_session(|session| session.begin_operation(place, route));
        let raised = match begun.unwrap_or_else(|| Err(NO_SESSION.to_owned())) {
            Ok(()) => false,
            Err(text) => {
                push_bytes(state, text.as_bytes());
                true
            }
        };
        if raised { ffi::lua_error(state) } else { 0 }
    }
}

/// `redis.settle(outcome)`: ends the operation with `ok`, `refused` or `raised`.
unsafe extern "C-unwind" fn lua_settle(state: *mut lua_State) -> c_int {
    // SAFETY: as in `lua_call`; the string stays on the stack meanwhile.
    unsafe {
        let mut len = 0;
        let bytes = ffi::lua_tolstring(state, 1, &mut len);
        if !bytes.is_null() {
            let outcome = std::slice::from_raw_parts(bytes.cast(), len);
            with_session(|session| session.settle(outcome));
        }
    }
    0
}

/// The deepest nesting that can be packed, as in Valkey.
const NESTING_MAX: usize = 16;

/// Appends the value on top of the stack.
unsafe fn pack_value(state: *mut lua_State, out: &mut Vec<u8>, depth: usize) -> Result<(), &'static str> {
    // SAFETY: `lua_pack` made room for two values per level; numbers are read without conversion, so lua_next keeps its place.
    unsafe {
        match ffi::lua_type(state, -1) {
            ffi::LUA_TNIL => out.push(0xc0),
            ffi::LUA_TBOOLEAN => out.push(if ffi::lua_toboolean(state, -1) != 0 { 0xc3 } else { 0xc2 }),
            ffi::LUA_TNUMBER => pack_number(out, ffi::lua_tonumber(state, -1)),
            ffi::LUA_TSTRING => {
                let mut len = 0;
                let bytes = ffi::lua_tolstring(state, -1, &mut len);
                pack_bytes(out, std::slice::from_raw_parts(bytes.cast(), len));
            }
            ffi::LUA_TTABLE => {
                if depth == NESTING_MAX {
                    return Err("cmsgpack: nesting is deeper than 16");
                }
                pack_table(state, out, depth + 1)?;
            }
            _ => return Err("cmsgpack: only nil, booleans, numbers, strings and tables can be packed"),
        }
    }
    Ok(())
}

unsafe fn pack_table(state: *mut lua_State, out: &mut Vec<u8>, depth: usize) -> Result<(), &'static str> {
    // SAFETY: the table is on top. Every lua_next loop runs to its end, or leaves by an error that resets the stack.
    unsafe {
        let (mut count, mut highest, mut is_array) = (0u32, 0.0f64, true);
        ffi::lua_pushnil(state);
        while ffi::lua_next(state, -2) != 0 {
            count += 1;
            if is_array {
                let key = if ffi::lua_type(state, -2) == ffi::LUA_TNUMBER { ffi::lua_tonumber(state, -2) } else { 0.0 };
                is_array = key >= 1.0 && key.fract() == 0.0;
                highest = highest.max(key);
            }
            ffi::lua_settop(state, -2);
        }
        if is_array && highest == f64::from(count) {
            pack_length(out, count, 0x90, 0xdc);
            for position in 1..=count {
                ffi::lua_rawgeti(state, -1, position as _);
                pack_value(state, out, depth)?;
                ffi::lua_settop(state, -2);
            }
        } else {
            pack_length(out, count, 0x80, 0xde);
            ffi::lua_pushnil(state);
            while ffi::lua_next(state, -2) != 0 {
                ffi::lua_pushvalue(state, -2);
                pack_value(state, out, depth)?;
                ffi::lua_settop(state, -2);
                pack_value(state, out, depth)?;
                ffi::lua_settop(state, -2);
            }
        }
    }
    Ok(())
}

fn pack_length(out: &mut Vec<u8>, len: u32, short: u8, long: u8) {
    if len < 16 {
        out.push(short | len as u8);
    } else if let Ok(len) = u16::try_from(len) {
        out.push(long);
        out.extend_from_slice(&len.to_be_bytes());
    } else {
        out.push(long + 1);
        out.extend_from_slice(&len.to_be_bytes());
    }
}

fn pack_bytes(out: &mut Vec<u8>, bytes: &[u8]) {
    match bytes.len() {
        len @ 0..=31 => out.push(0xa0 | len as u8),
        len @ 32..=0xff => out.extend_from_slice(&[0xd9, len as u8]),
        len @ 0x100..=0xffff => {
            out.push(0xda);
            out.extend_from_slice(&(len as u16).to_be_bytes());
        }
        len => {
            out.push(0xdb);
            out.extend_from_slice(&(len as u32).to_be_bytes());
        }
    }
    out.extend_from_slice(bytes);
}

/// Integers in their smallest form, other numbers as the shortest float that holds them exactly. Valkey does the same.
fn pack_number(out: &mut Vec<u8>, number: f64) {
    // 2^63 is the first double that an i64 cannot hold.
    if number.trunc() == number && number.abs() < 9_223_372_036_854_775_808.0 {
        let n = number as i64;
        match n {
            0..=0x7f => out.push(n as u8),
            -32..=-1 => out.push(n as i8 as u8),
            0x80..=0xff => out.extend_from_slice(&[0xcc, n as u8]),
            0x100..=0xffff => pack_wide(out, 0xcd, &(n as u16).to_be_bytes()),
            0x1_0000..=0xffff_ffff => pack_wide(out, 0xce, &(n as u32).to_be_bytes()),
            0x1_0000_0000.. => pack_wide(out, 0xcf, &n.to_be_bytes()),
            -0x80..=-33 => out.extend_from_slice(&[0xd0, n as i8 as u8]),
            -0x8000..=-0x81 => pack_wide(out, 0xd1, &(n as i16).to_be_bytes()),
            -0x8000_0000..=-0x8001 => pack_wide(out, 0xd2, &(n as i32).to_be_bytes()),
            _ => pack_wide(out, 0xd3, &n.to_be_bytes()),
        }
    } else if f64::from(number as f32) == number {
        pack_wide(out, 0xca, &(number as f32).to_be_bytes());
    } else {
        pack_wide(out, 0xcb, &number.to_be_bytes());
    }
}

fn pack_wide(out: &mut Vec<u8>, tag: u8, bytes: &[u8]) {
    out.push(tag);
    out.extend_from_slice(bytes);
}

unsafe fn pack_on_stack(state: *mut lua_State) -> Result<(), &'static str> {
    thread_local! {
        /// Memory for packing, reused by the next call.
        static BUFFER: Cell<Vec<u8>> = const { Cell::new(Vec::new()) };
    }
    // SAFETY: four slots per level cover every push below.
    unsafe {
        let top = ffi::lua_gettop(state);
        if top == 0 {
            return Err("cmsgpack: pack takes a value");
        }
        if ffi::lua_checkstack(state, 4 * (NESTING_MAX as c_int + 2)) == 0 {
            return Err("cmsgpack: Lua stack overflow");
        }
        let mut buffer = BUFFER.take();
        buffer.clear();
        let mut result = Ok(());
        for index in 1..=top {
            ffi::lua_pushvalue(state, index);
            result = pack_value(state, &mut buffer, 0);
            ffi::lua_settop(state, top);
            if result.is_err() {
                break;
            }
        }
        if result.is_ok() {
            push_bytes(state, &buffer);
        }
        if buffer.capacity() <= 1 << 20 {
            BUFFER.set(buffer);
        }
        result
    }
}

/// `cmsgpack.pack(value, ...)`: the packed values, concatenated.
unsafe extern "C-unwind" fn lua_pack(state: *mut lua_State) -> c_int {
    // SAFETY: as in `lua_call`.
    unsafe {
        let raised = match pack_on_stack(state) {
            Ok(()) => false,
            Err(text) => {
                push_bytes(state, text.as_bytes());
                true
            }
        };
        if raised { ffi::lua_error(state) } else { 1 }
    }
}

const MISSING: &str = "cmsgpack: missing bytes in input";
const UNKNOWN: &str = "cmsgpack: bad data format in input";

/// Input deeper than any contract allows fails before it can exhaust the stack.
const UNPACK_DEPTH_MAX: usize = 64;

struct Input<'a>(&'a [u8]);

impl<'a> Input<'a> {
    fn take(&mut self, len: usize) -> Result<&'a [u8], &'static str> {
        let (head, tail) = self.0.split_at_checked(len).ok_or(MISSING)?;
        self.0 = tail;
        Ok(head)
    }

    fn array<const N: usize>(&mut self) -> Result<[u8; N], &'static str> {
        let (head, tail) = self.0.split_first_chunk::<N>().ok_or(MISSING)?;
        self.0 = tail;
        Ok(*head)
    }

    fn length(&mut self, width: usize) -> Result<usize, &'static str> {
        Ok(self.take(width)?.iter().fold(0, |n, byte| n << 8 | usize::from(*byte)))
    }
}

/// Pushes the next value of the input.
unsafe fn unpack_value(state: *mut lua_State, input: &mut Input<'_>, depth: usize) -> Result<(), &'static str> {
    // SAFETY: stack space is reserved on every level; keys are checked, so lua_rawset cannot raise.
    unsafe {
        let tag = input.array::<1>()?[0];
        match tag {
            0x00..=0x7f => ffi::lua_pushnumber(state, f64::from(tag)),
            0xe0..=0xff => ffi::lua_pushnumber(state, f64::from(tag as i8)),
            0x80..=0x8f => unpack_map(state, input, usize::from(tag & 0x0f), depth)?,
            0x90..=0x9f => unpack_array(state, input, usize::from(tag & 0x0f), depth)?,
            0xa0..=0xbf => push_bytes(state, input.take(usize::from(tag & 0x1f))?),
            0xc0 => ffi::lua_pushnil(state),
            0xc2 => ffi::lua_pushboolean(state, 0),
            0xc3 => ffi::lua_pushboolean(state, 1),
            0xc4 | 0xd9 => {
                let len = input.length(1)?;
                push_bytes(state, input.take(len)?);
            }
            0xc5 | 0xda => {
                let len = input.length(2)?;
                push_bytes(state, input.take(len)?);
            }
            0xc6 | 0xdb => {
                let len = input.length(4)?;
                push_bytes(state, input.take(len)?);
            }
            0xca => ffi::lua_pushnumber(state, f64::from(f32::from_be_bytes(input.array()?))),
            0xcb => ffi::lua_pushnumber(state, f64::from_be_bytes(input.array()?)),
            0xcc => ffi::lua_pushnumber(state, f64::from(u8::from_be_bytes(input.array()?))),
            0xcd => ffi::lua_pushnumber(state, f64::from(u16::from_be_bytes(input.array()?))),
            0xce => ffi::lua_pushnumber(state, f64::from(u32::from_be_bytes(input.array()?))),
            0xcf => ffi::lua_pushnumber(state, u64::from_be_bytes(input.array()?) as f64),
            0xd0 => ffi::lua_pushnumber(state, f64::from(i8::from_be_bytes(input.array()?))),
            0xd1 => ffi::lua_pushnumber(state, f64::from(i16::from_be_bytes(input.array()?))),
            0xd2 => ffi::lua_pushnumber(state, f64::from(i32::from_be_bytes(input.array()?))),
            0xd3 => ffi::lua_pushnumber(state, i64::from_be_bytes(input.array()?) as f64),
            0xdc => {
                let len = input.length(2)?;
                unpack_array(state, input, len, depth)?;
            }
            0xdd => {
                let len = input.length(4)?;
                unpack_array(state, input, len, depth)?;
            }
            0xde => {
                let len = input.length(2)?;
                unpack_map(state, input, len, depth)?;
            }
            0xdf => {
                let len = input.length(4)?;
                unpack_map(state, input, len, depth)?;
            }
            0xc1 | 0xc7..=0xc9 | 0xd4..=0xd8 => return Err(UNKNOWN),
        }
    }
    Ok(())
}

unsafe fn deeper(state: *mut lua_State, depth: usize) -> Result<usize, &'static str> {
    // SAFETY: lua_checkstack reports instead of raising.
    if depth == UNPACK_DEPTH_MAX || unsafe { ffi::lua_checkstack(state, 8) } == 0 {
        return Err("cmsgpack: nesting of the input is too deep");
    }
    Ok(depth + 1)
}

unsafe fn unpack_array(
    state: *mut lua_State,
    input: &mut Input<'_>,
    len: usize,
    depth: usize,
) -> Result<(), &'static str> {
    // SAFETY: `deeper` reserved the space. Every element takes a byte, so a length beyond the input is invalid and
    // reserves nothing.
    unsafe {
        let depth = deeper(state, depth)?;
        if len > input.0.len() {
            return Err(MISSING);
        }
        ffi::lua_createtable(state, len as c_int, 0);
        for position in 1..=len {
            unpack_value(state, input, depth)?;
            ffi::lua_rawseti(state, -2, position as _);
        }
    }
    Ok(())
}

unsafe fn unpack_map(
    state: *mut lua_State,
    input: &mut Input<'_>,
    len: usize,
    depth: usize,
) -> Result<(), &'static str> {
    // SAFETY: as in `unpack_array`. The keys that lua_rawset refuses, nil and NaN, are rejected before.
    unsafe {
        let depth = deeper(state, depth)?;
        if len > input.0.len() / 2 {
            return Err(MISSING);
        }
        ffi::lua_createtable(state, 0, len as c_int);
        for _ in 0..len {
            unpack_value(state, input, depth)?;
            let refused = match ffi::lua_type(state, -1) {
                ffi::LUA_TNIL => true,
                ffi::LUA_TNUMBER => ffi::lua_tonumber(state, -1).is_nan(),
                _ => false,
            };
            if refused {
                return Err(UNKNOWN);
            }
            unpack_value(state, input, depth)?;
            ffi::lua_rawset(state, -3);
        }
    }
    Ok(())
}

/// Pushes up to `limit` values of the string at index 1, starting at `offset`. Returns their number and the offset of
/// the next value.
unsafe fn unpack_on_stack(state: *mut lua_State, limit: usize, offset: usize) -> Result<(c_int, usize), &'static str> {
    // SAFETY: the string stays on the stack at index 1 while its bytes are read, and space is reserved for each value.
    unsafe {
        if ffi::lua_gettop(state) != 1 || ffi::lua_type(state, 1) != ffi::LUA_TSTRING {
            return Err("cmsgpack: unpack takes one string");
        }
        let mut len = 0;
        let bytes = ffi::lua_tolstring(state, 1, &mut len);
        let bytes: &[u8] = std::slice::from_raw_parts(bytes.cast(), len);
        let mut input = Input(bytes.get(offset..).ok_or("cmsgpack: the offset is behind the end")?);
        let mut count = 0;
        while !input.0.is_empty() && count < limit {
            if ffi::lua_checkstack(state, 8) == 0 {
                return Err("cmsgpack: too many values");
            }
            unpack_value(state, &mut input, 0)?;
            count += 1;
        }
        Ok((count as c_int, len - input.0.len()))
    }
}

/// `cmsgpack.unpack(string)`: all values in it.
unsafe extern "C-unwind" fn lua_unpack(state: *mut lua_State) -> c_int {
    // SAFETY: as in `lua_call`; the error text replaces a half-built value.
    unsafe {
        match unpack_on_stack(state, usize::MAX, 0) {
            Ok((count, _)) => count,
            Err(text) => {
                ffi::lua_settop(state, 0);
                push_bytes(state, text.as_bytes());
                ffi::lua_error(state)
            }
        }
    }
}

/// `cmsgpack.unpack_limit(string, limit, offset)`: the offset of the next value, or -1 at the end, and up to `limit`
/// values.
unsafe extern "C-unwind" fn lua_unpack_limit(state: *mut lua_State) -> c_int {
    // SAFETY: as in `lua_unpack`.
    unsafe {
        let (limit, offset) = (ffi::lua_tonumber(state, 2), ffi::lua_tonumber(state, 3));
        ffi::lua_settop(state, 1);
        match unpack_on_stack(state, limit as usize, offset as usize) {
            Ok((count, next)) => {
                let is_end = next == ffi::lua_rawlen(state, 1);
                ffi::lua_pushnumber(state, if is_end { -1.0 } else { next as f64 });
                ffi::lua_insert(state, 2);
                count + 1
            }
            Err(text) => {
                ffi::lua_settop(state, 0);
                push_bytes(state, text.as_bytes());
                ffi::lua_error(state)
            }
        }
    }
}
