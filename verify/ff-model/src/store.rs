//! An embedded store for one run: in memory if the machine allows it, in test mode, under virtual time, with any
//! library text.

use std::path::Path;

use ff_backend_embedded::{Durability, Embedded, Options};
use ff_script::dump::{Dump, DumpValue};
use ff_script::generated::{CheckExecutions, CheckExecutionsReply, CheckKeys, CheckKeysReply, Finding};
use ff_script::{Call, Host, HostError, Invocation, Route, ScanCursor};
use tempfile::TempDir;
use tokio::runtime::Runtime;

use crate::model::Answer;
use crate::op::read_answer;

/// The partition that every run uses.
pub const ROUTE: Route = Route::Execution(0);

/// A separate embedded store.
pub struct Store {
    host: Option<Embedded>,
    library: String,
    directory: TempDir,
    runtime: Runtime,
}

impl Store {
    /// An empty store that runs this library.
    pub fn open(library: &str) -> Store {
        Self::begin(library, |_| ())
    }

    /// A store that starts as a copy of a [`Store::backup`].
    pub fn of_backup(library: &str, backup: &Path) -> Store {
        Self::begin(library, |directory| {
            for file in std::fs::read_dir(backup).expect("a backup is a directory") {
                let file = file.expect("a backup can be listed");
                std::fs::copy(file.path(), directory.join(file.file_name())).expect("a backup can be copied");
            }
        })
    }

    fn begin(library: &str, fill: impl FnOnce(&Path)) -> Store {
        // A memory disk: the tests check the library, not the speed of the disk.
        let memory = Path::new("/dev/shm");
        let mut directory = tempfile::Builder::new();
        directory.prefix("ff-model-");
        let directory = if memory.is_dir() { directory.tempdir_in(memory) } else { directory.tempdir() };
        let runtime = tokio::runtime::Builder::new_current_thread().build().expect("a runtime starts");
        let mut store = Store {
            host: None,
            library: library.to_owned(),
            directory: directory.expect("a directory for a store"),
            runtime,
        };
        fill(store.directory.path());
        store.reopen();
        store
    }

    /// Opens the directory again, as after a crash.
    pub fn reopen(&mut self) {
        drop(self.host.take());
        let mut options = Options::new(self.directory.path(), self.library.clone());
        options.durability = Durability::Relaxed;
        options.reserve_bytes = 0;
        options.strict = true;
        options.map_size = 1 << 30;
        self.host = Some(Embedded::open(options).expect("an embedded store opens"));
    }

    /// Copies the content of the store into a directory.
    pub fn backup(&self, directory: &Path) {
        self.runtime.block_on(self.host().backup(directory)).expect("a store is backed up");
    }

    /// The host itself, for faults.
    pub fn host(&self) -> &Embedded {
        self.host.as_ref().expect("open between two reopenings")
    }

    /// Sends one call.
    pub fn send(&self, invocation: Invocation) -> Result<Vec<u8>, HostError> {
        self.runtime.block_on(self.host().call(invocation))
    }

    /// Sends several calls in one list.
    pub fn send_all(&self, invocations: Vec<Invocation>) -> Vec<Result<Vec<u8>, HostError>> {
        self.runtime.block_on(self.host().run(invocations))
    }

    /// Sends one typed call to the partition.
    pub fn call<C: Call>(&self, call: &C, now_ms: i64) -> Answer<C::Reply> {
        let invocation = Invocation {
            route: ROUTE,
            function: C::FUNCTION,
            read_only: C::READ_ONLY,
            args: call.encode(),
            now_ms: Some(now_ms),
            count_calls: false,
            terms: ff_script::Terms::default(),
        };
        let bytes = self.send(invocation).unwrap_or_else(|error| panic!("{error}"));
        read_answer::<C>(&bytes).unwrap_or_else(|error| panic!("{}: {error}", C::FUNCTION))
    }

    /// All broken invariants of the partition.
    pub fn fsck(&self, now_ms: i64) -> Vec<Finding> {
        let mut found = Vec::new();
        let mut offset = 0;
        loop {
            let page = self.call(&CheckExecutions { offset, limit: 64, repair: false }, now_ms);
            let CheckExecutionsReply::Checked { findings, looked, more, .. } = page.expect("records can be checked");
            found.extend(findings);
            offset += looked;
            if !more {
                break;
            }
        }
        let (mut keys, mut cursor) = (Vec::new(), ScanCursor::Start);
        while cursor != ScanCursor::End {
            let page = self.runtime.block_on(self.host().scan(cursor, 1_000)).expect("keys are scanned");
            keys.extend(page.keys.into_iter().map(ff_script::Bytes));
            cursor = page.next;
        }
        for chunk in keys.chunks(500) {
            let checked = self.call(&CheckKeys { keys: chunk.to_vec(), repair: false }, now_ms);
            let CheckKeysReply::Checked { findings, .. } = checked.expect("keys can be checked");
            found.extend(findings);
        }
        found
    }

    /// Number of store commands so far.
    pub fn commands(&self) -> u64 {
        self.runtime.block_on(self.host().store_commands()).expect("an embedded store counts")
    }

    /// The content of the whole store.
    pub fn dump(&self) -> Dump {
        let dump = self.runtime.block_on(self.host().dump()).expect("an embedded store dumps");
        ff_script::dump::ordered(dump.into_iter().map(|(key, value)| (key, plain(value))).collect())
    }
}

fn plain(value: ff_backend_embedded::DumpValue) -> DumpValue {
    match value {
        ff_backend_embedded::DumpValue::Hash(fields) => DumpValue::Hash(fields),
        ff_backend_embedded::DumpValue::Zset(members) => DumpValue::Zset(members),
        ff_backend_embedded::DumpValue::String(bytes) => DumpValue::String(bytes),
        ff_backend_embedded::DumpValue::Stream(entries) => DumpValue::Stream(
            entries.into_iter().map(|((ms, sequence), fields)| (format!("{ms}-{sequence}"), fields)).collect(),
        ),
    }
}
