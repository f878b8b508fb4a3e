//! One transaction and the calls that run in it. Each call can be undone.

use std::sync::atomic::{AtomicU64, Ordering};

use ff_script::Route;
use heed::{RoTxn, RwTxn, WithoutTls};

use super::fields::Span;
use super::layout::{TreeKey, encode_score, is_digest};
use super::overlay::{Overlay, Record, View};
use super::reply::Reply;
use super::{Failure, Store, StoreError, refused};
use crate::faults::Faults;

pub(crate) enum Txn<'e> {
    /// A group that only reads: it takes no writer lock and commits nothing.
    Read(RoTxn<'e, WithoutTls>),
    Write(RwTxn<'e>),
}

/// How to undo one write, newest first.
pub(crate) enum Undo {
    Field { slot: usize, field: Span, old: Option<Span> },
    Record { slot: usize, old: Record },
    Member { id: u64, member: Vec<u8>, old: Option<f64> },
    Entry { id: u64, entry: (u64, u64), old: Option<Vec<u8>> },
    LargeField { id: u64, field: Vec<u8>, old: Option<Vec<u8>> },
}

/// The trees as this transaction sees them, through the overlay.
pub(crate) struct Tables<'e> {
    pub store: &'e Store,
    pub txn: Txn<'e>,
    pub overlay: Overlay,
    pub undo: Vec<Undo>,
    next_id: Option<u64>,
    scratch: Vec<u8>,
}

impl<'e> Tables<'e> {
    pub fn read(&self) -> &RoTxn<'_> {
        match &self.txn {
            Txn::Read(txn) => txn,
            Txn::Write(txn) => txn,
        }
    }

    pub fn write(&mut self) -> Result<&mut RwTxn<'e>, Failure> {
        match &mut self.txn {
            Txn::Read(_) => refused("ERR Write commands are not allowed from read-only scripts."),
            Txn::Write(txn) => Ok(txn),
        }
    }

    /// The content of a key, without a copy.
    pub fn view(&self, key: &[u8]) -> Result<View<'_>, StoreError> {
        if let Some(slot) = self.overlay.find(key) {
            return Ok(self.overlay.slots[slot].record.view());
        }
        let tree_key = TreeKey::name(key);
        match self.store.keys.get(self.read(), &tree_key)? {
            None => Ok(View::Absent),
            Some(value) => Ok(View::decode(&tree_key, value)?.0),
        }
    }

    /// The slot of a key before a change.
    pub fn slot(&mut self, key: &[u8]) -> Result<usize, StoreError> {
        if let Some(slot) = self.overlay.find(key) {
            return Ok(slot);
        }
        let record = self.view(key)?.to_record()?;
        Ok(self.overlay.add(key, record))
    }

    pub fn record(&self, slot: usize) -> &Record {
        &self.overlay.slots[slot].record
    }

    /// Replaces the content of a key. The old record moves into the undo log.
    pub fn replace(&mut self, slot: usize, record: Record) {
        let slot_ref = &mut self.overlay.slots[slot];
        slot_ref.dirty = true;
        let old = std::mem::replace(&mut slot_ref.record, record);
        self.undo.push(Undo::Record { slot, old });
    }

    /// A new id that was never used before.
    pub fn fresh_id(&mut self) -> Result<u64, Failure> {
        let id = match self.next_id {
            Some(id) => id,
            None => match self.store.meta.get(self.read(), b"next_id")? {
                None => 1,
                Some(bytes) => {
                    let bytes = <[u8; 8]>::try_from(bytes)
                        .map_err(|_| StoreError::Corrupt("next_id is not 8 bytes".to_owned()))?;
                    u64::from_be_bytes(bytes)
                }
            },
        };
        self.next_id = Some(id + 1);
        Ok(id)
    }

    pub fn score(&self, id: u64, member: &[u8]) -> Result<Option<f64>, StoreError> {
        match self.store.members.get(self.read(), &TreeKey::member(id, member))? {
            None => Ok(None),
            Some(value) => match value.first_chunk::<8>() {
                Some(bytes) => Ok(Some(f64::from_be_bytes(*bytes))),
                None => Err(StoreError::Corrupt("a score is not 8 bytes".to_owned())),
            },
        }
    }

    /// Sets the score of a member, or removes the member, in both trees. `old` is its current score.
    pub fn place(&mut self, id: u64, member: &[u8], old: Option<f64>, new: Option<f64>) -> Result<(), Failure> {
        let store = self.store;
        let long = is_digest(member.len());
        let txn = self.write()?;
        if let Some(score) = old
            && new.is_none_or(|new| encode_score(new) != encode_score(score))
        {
            store.order.delete(txn, &TreeKey::order(id, score, member))?;
        }
        let member_key = TreeKey::member(id, member);
        match new {
            None => {
                store.members.delete(txn, &member_key)?;
            }
            Some(score) => {
                let original = if long { member } else { &[] };
                store.order.put(txn, &TreeKey::order(id, score, member), original)?;
                let bits = score.to_be_bytes();
                if long {
                    store.members.put(txn, &member_key, &[&bits, member].concat())?;
                } else {
                    store.members.put(txn, &member_key, &bits)?;
                }
            }
        }
        Ok(())
    }

    pub fn put_entry(&mut self, id: u64, entry: (u64, u64), packed: Option<&[u8]>) -> Result<(), Failure> {
        let store = self.store;
        let txn = self.write()?;
        let key = TreeKey::entry(id, entry);
        match packed {
            Some(packed) => store.entries.put(txn, &key, packed)?,
            None => {
                store.entries.delete(txn, &key)?;
            }
        }
        Ok(())
    }

    pub fn put_large_field(&mut self, id: u64, field: &[u8], value: Option<&[u8]>) -> Result<(), Failure> {
        let store = self.store;
        let txn = self.write()?;
        let key = TreeKey::member(id, field);
        match value {
            Some(value) if is_digest(field.len()) => {
                let len = (field.len() as u64).to_be_bytes();
                store.fields.put(txn, &key, &[&len, field, value].concat())?;
            }
            Some(value) => store.fields.put(txn, &key, value)?,
            None => {
                store.fields.delete(txn, &key)?;
            }
        }
        Ok(())
    }

    /// Undoes every write after the mark.
    fn roll_back(&mut self, mark: usize) -> Result<(), Failure> {
        while self.undo.len() > mark {
            match self.undo.pop().expect("the log is longer than the mark") {
                Undo::Field { slot, field, old } => match &mut self.overlay.slots[slot].record {
                    Record::Hash(fields) => fields.restore(field, old),
                    other => unreachable!("a field was written to {other:?}"),
                },
                Undo::Record { slot, old } => self.overlay.slots[slot].record = old,
                Undo::Member { id, member, old } => {
                    let now = self.score(id, &member)?;
                    self.place(id, &member, now, old)?;
                }
                Undo::Entry { id, entry, old } => self.put_entry(id, entry, old.as_deref())?,
                Undo::LargeField { id, field, old } => self.put_large_field(id, &field, old.as_deref())?,
            }
        }
        Ok(())
    }

    /// Writes the touched records to the tree.
    fn flush(&mut self) -> Result<(), Failure> {
        let store = self.store;
        let mut value = std::mem::take(&mut self.scratch);
        let slots = std::mem::take(&mut self.overlay).slots;
        let next_id = self.next_id.take();
        if next_id.is_none() && !slots.iter().any(|slot| slot.dirty) {
            return Ok(());
        }
        let txn = self.write()?;
        for slot in slots.iter().filter(|slot| slot.dirty) {
            let (key, present) = slot.encode(&mut value);
            if present {
                store.keys.put(txn, &key, &value)?;
            } else {
                store.keys.delete(txn, &key)?;
            }
        }
        if let Some(id) = next_id {
            store.meta.put(txn, b"next_id", &id.to_be_bytes())?;
        }
        Ok(())
    }
}

/// A channel and a message published on it.
pub(crate) type Published = (Vec<u8>, Vec<u8>);

/// The state of the running operation.
#[derive(Clone)]
pub(crate) struct Call {
    pub route: Route,
    pub tag: Option<String>,
    pub read_only: bool,
    pub now_us: i64,
}

/// A transaction with a call in it, which every `redis.call` uses.
pub(crate) struct Session<'e> {
    pub tables: Tables<'e>,
    pub reply: Reply,
    pub call: Call,
    pub published: Vec<Published>,
    /// Whether the call has written.
    pub wrote: bool,
    /// Whether any call of the group has written.
    pub group_wrote: bool,
    /// The first rule that the call broke, even if the function caught the error.
    pub violation: Option<String>,
    /// The failure of the store, after which no command runs.
    pub lost: Option<StoreError>,
    pub strict: bool,
    /// The operations of the running list.
    list: Vec<Call>,
    /// The host's remark about each operation, beside its reply.
    pub remarks: Vec<Option<Remark>>,
    /// The operation that runs, or that met the failure of the store.
    pub at: usize,
    published_before: usize,
    faults: &'e Faults,
    commands: &'e AtomicU64,
}

/// A remark that the host adds to the reply of an operation.
#[derive(Debug)]
pub(crate) enum Remark {
    /// It raised after a write, which was undone.
    TakenBack,
    /// It broke this rule, and was undone.
    Broke(String),
}

/// The start of a plan.
#[derive(Clone, Copy)]
pub(crate) struct Mark {
    undo: usize,
    published: usize,
    wrote: bool,
}

impl<'e> Session<'e> {
    pub fn new(store: &'e Store, txn: Txn<'e>, faults: &'e Faults, commands: &'e AtomicU64, strict: bool) -> Self {
        Session {
            tables: Tables {
                store,
                txn,
                overlay: Overlay::default(),
                undo: Vec::new(),
                next_id: None,
                scratch: Vec::new(),
            },
            reply: Reply::default(),
            call: Call { route: Route::Config, tag: None, read_only: true, now_us: 0 },
            published: Vec::new(),
            wrote: false,
            group_wrote: false,
            violation: None,
            lost: None,
            strict,
            list: Vec::new(),
            remarks: Vec::new(),
            at: 0,
            published_before: 0,
            faults,
            commands,
        }
    }

    pub fn begin(&mut self, call: Call) {
        self.tables.undo.clear();
        self.published_before = self.published.len();
        self.wrote = false;
        self.violation = None;
        self.call = call;
    }

    /// Sets the operations of a list. The library begins and settles each of them. Until then the time is `now_us`.
    pub fn start(&mut self, list: Vec<Call>, now_us: i64) {
        self.begin(Call { route: Route::Config, tag: None, read_only: true, now_us });
        self.commands.fetch_add(1, Ordering::Relaxed);
        self.remarks.clear();
        self.remarks.resize_with(list.len(), || None);
        self.list = list;
    }

    /// Begins the operation at this position of the list, counted from one. A running operation continues on another
    /// route.
    pub fn begin_operation(&mut self, place: usize, route: &str) -> Result<(), String> {
        let at = place.wrapping_sub(1);
        let Some(mut call) = self.list.get(at).cloned() else {
            return Err(format!("ERR the list has no operation {place}"));
        };
        if self.lost.is_none() {
            self.at = at;
        }
        if let Some(visited) = Route::from_name(route).filter(|visited| *visited != call.route) {
            call = Call { route: visited, tag: visited.tag(), ..call };
        }
        self.begin(call);
        Ok(())
    }

    /// Keeps or undoes the operation's writes. They are undone if it raised or broke a rule of test mode.
    pub fn settle(&mut self, outcome: &[u8]) {
        let raised = outcome == b"raised";
        let remark = if raised && self.wrote {
            Some(Remark::TakenBack)
        } else if self.strict && !raised && self.violation.is_some() {
            self.violation.take().map(Remark::Broke)
        } else if self.strict && self.wrote && outcome == b"refused" {
            Some(Remark::Broke("it refused after a write".to_owned()))
        } else {
            None
        };
        if raised || remark.is_some() {
            self.take_back();
        } else {
            self.keep();
        }
        if remark.is_some() && self.lost.is_none() {
            self.remarks[self.at] = remark;
        }
    }

    /// Keeps the call's writes.
    pub fn keep(&mut self) {
        self.group_wrote |= self.wrote;
        let slots = &mut self.tables.overlay.slots;
        for undo in self.tables.undo.drain(..) {
            if let Undo::Field { slot, .. } = undo
                && let Record::Hash(fields) = &mut slots[slot].record
            {
                fields.compact();
            }
        }
    }

    /// Undoes the call's writes and messages.
    pub fn take_back(&mut self) {
        let mark = Mark { undo: 0, published: self.published_before, wrote: false };
        self.roll_back_to(mark);
    }

    pub fn mark(&self) -> Mark {
        Mark { undo: self.tables.undo.len(), published: self.published.len(), wrote: self.wrote }
    }

    pub fn roll_back_to(&mut self, mark: Mark) {
        self.published.truncate(mark.published);
        self.wrote = mark.wrote;
        if self.lost.is_some() {
            return;
        }
        if let Err(failure) = self.tables.roll_back(mark.undo) {
            self.lose(failure);
        }
    }

    fn lose(&mut self, failure: Failure) {
        if self.lost.is_none() {
            self.lost = Some(match failure {
                Failure::Store(error) => error,
                Failure::Refused(text) => StoreError::Unavailable(text),
            });
        }
    }

    /// Runs one command. Leaves its reply in `self.reply`, or returns the text of the refusal.
    pub fn run(&mut self, args: &[&[u8]]) -> Result<(), String> {
        self.reply.clear();
        if let Some(error) = &self.lost {
            return Err(format!("ERR {error}"));
        }
        self.commands.fetch_add(1, Ordering::Relaxed);
        match self.dispatch(args) {
            Ok(()) => Ok(()),
            Err(Failure::Refused(text)) => Err(text),
            Err(Failure::Store(error)) => {
                let text = format!("ERR {error}");
                self.lose(Failure::Store(error));
                Err(text)
            }
        }
    }

    /// A command panicked: its partial changes are discarded with the transaction.
    pub fn lose_to_panic(&mut self) {
        self.lost = Some(StoreError::Unavailable("a store command panicked".to_owned()));
    }

    pub fn meet_fault(&self, writes: bool) -> Result<(), Failure> {
        match self.faults.meet(writes) {
            None => Ok(()),
            Some(fault) => Err(Failure::Store(StoreError::Injected(fault))),
        }
    }

    /// Notes a broken rule, so that test mode reports it even if the function catches the error.
    pub fn violate<T>(&mut self, text: String) -> Result<T, Failure> {
        if self.violation.is_none() {
            self.violation = Some(text.clone());
        }
        refused(text)
    }

    /// Writes the group and commits it. Returns the messages to publish.
    pub fn commit(mut self) -> Result<Vec<Published>, StoreError> {
        if let Some(error) = self.lost {
            return Err(error);
        }
        if let Err(failure) = self.tables.flush() {
            return Err(match failure {
                Failure::Store(error) => error,
                Failure::Refused(text) => StoreError::Unavailable(text),
            });
        }
        match self.tables.txn {
            Txn::Read(_) => {}
            Txn::Write(txn) => txn.commit()?,
        }
        Ok(self.published)
    }
}
