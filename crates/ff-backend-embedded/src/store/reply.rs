//! The reply of a store command, flat, so that it is copied once on its way to Lua and its memory is used again.

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
    /// `+OK`.
    Ok,
    /// So many of the following values belong together.
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
        // One huge reply must not hold its memory for ever.
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

    /// Begins an array whose length is not known yet; [`Reply::close`] fills it in.
    pub fn open(&mut self) -> usize {
        self.tokens.push(Token::Array(0));
        self.tokens.len() - 1
    }

    pub fn close(&mut self, open: usize, len: usize) {
        self.tokens[open] = Token::Array(len);
    }
}
