//! The reply of a store command in flat form. It is copied once on its way to Lua, and its memory is reused.

/// One piece of a reply.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) enum Token {
    Nil,
    Integer(i64),
    /// Bytes of the buffer.
    Bulk {
        at: usize,
        len: usize,
    },
    Ok,
    /// The number of following values that form an array.
    Array(usize),
}

/// A reply under construction.
#[derive(Debug, Default)]
pub(crate) struct Reply {
    pub tokens: Vec<Token>,
    pub bytes: Vec<u8>,
}

impl Reply {
    pub fn clear(&mut self) {
        self.tokens.clear();
        // One huge reply must not keep its memory for ever.
        if self.bytes.capacity() > 1 << 20 {
            self.bytes = Vec::new();
        }
        self.bytes.clear();
    }

    pub fn nil(&mut self) {
        self.tokens.push(Token::Nil);
    }

    pub fn integer(&mut self, n: i64) {
        self.tokens.push(Token::Integer(n));
    }

    pub fn ok(&mut self) {
        self.tokens.push(Token::Ok);
    }

    pub fn bulk(&mut self, bytes: &[u8]) {
        self.tokens.push(Token::Bulk { at: self.bytes.len(), len: bytes.len() });
        self.bytes.extend_from_slice(bytes);
    }

    pub fn array(&mut self, len: usize) {
        self.tokens.push(Token::Array(len));
    }

    /// Begins an array of unknown length; [`Reply::close`] fills the length in.
    pub fn open(&mut self) -> usize {
        self.tokens.push(Token::Array(0));
        self.tokens.len() - 1
    }

    pub fn close(&mut self, open: usize, len: usize) {
        self.tokens[open] = Token::Array(len);
    }
}
