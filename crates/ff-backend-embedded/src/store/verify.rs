//! Checks the pages of a data file before LMDB uses them. LMDB trusts its pages, so damage would crash the process.
//!
//! The walk reads the file, not the map. It covers every page that a snapshot uses or lists as free. Each page must
//! have its right type and number, lie inside the file and be used once. Nodes must fill their page without gaps, keys
//! must be in order and within the bounds of their branch, and values must match their checksums. The only damage that
//! goes unnoticed is a wrong number of the last commit.

use std::collections::BTreeSet;
use std::fs::File;

use super::tree::{NAMES, unseal};

/// The damage and its place.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Damage(pub String);

macro_rules! ensure {
    ($condition:expr, $($text:tt)+) => {
        if !$condition {
            return Err(Damage(format!($($text)+)));
        }
    };
}

const PAGE_HEADER: usize = 16;
const META_LEN: usize = PAGE_HEADER + 136;
const NODE_HEADER: usize = 8;
const MAGIC: u32 = 0xBEEF_C0DE;
const FORMAT_VERSION: u32 = 1;
const KEY_MAX: usize = 511;
const DEPTH_MAX: u16 = 32;
const NO_PAGE: u64 = u64::MAX;

const BRANCH: u16 = 0x01;
const LEAF: u16 = 0x02;
const OVERFLOW: u16 = 0x04;
const META: u16 = 0x08;
const BIG_DATA: u16 = 0x01;
const SUB_TREE: u16 = 0x02;
const INTEGER_KEY: u16 = 0x08;

#[cfg(unix)]
fn read_at(file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    std::os::unix::fs::FileExt::read_exact_at(file, bytes, at)
}

#[cfg(not(unix))]
fn read_at(mut file: &File, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
    use std::io::{Read, Seek, SeekFrom};
    file.seek(SeekFrom::Start(at))?;
    file.read_exact(bytes)
}

fn u16_at(bytes: &[u8], at: usize) -> u16 {
    u16::from_ne_bytes(bytes[at..at + 2].try_into().expect("two bytes"))
}

fn u32_at(bytes: &[u8], at: usize) -> u32 {
    u32::from_ne_bytes(bytes[at..at + 4].try_into().expect("four bytes"))
}

fn u64_at(bytes: &[u8], at: usize) -> u64 {
    u64::from_ne_bytes(bytes[at..at + 8].try_into().expect("eight bytes"))
}

/// The root record of a tree.
#[derive(Clone, Copy)]
struct Root {
    flags: u16,
    depth: u16,
    entries: u64,
    page: u64,
}

impl Root {
    const LEN: usize = 48;

    fn read(bytes: &[u8]) -> Root {
        Root { flags: u16_at(bytes, 4), depth: u16_at(bytes, 6), entries: u64_at(bytes, 32), page: u64_at(bytes, 40) }
    }
}

/// The header of one snapshot.
struct Snapshot {
    page_size: usize,
    free: Root,
    main: Root,
    last_page: u64,
    number: u64,
}

impl Snapshot {
    fn read(file: &File, at: u64) -> Result<Snapshot, Damage> {
        let mut bytes = [0; META_LEN];
        ensure!(read_at(file, &mut bytes, at).is_ok(), "the file ends before its header");
        ensure!(u16_at(&bytes, 10) == META, "the header page at {at} is not marked as one");
        let meta = &bytes[PAGE_HEADER..];
        ensure!(u32_at(meta, 0) == MAGIC, "the header at {at} has no magic number");
        ensure!(u32_at(meta, 4) == FORMAT_VERSION, "the header at {at} has version {}", u32_at(meta, 4));
        let page_size = u32_at(meta, 24) as usize;
        ensure!(page_size.is_power_of_two() && (512..=0x8000).contains(&page_size), "the page size is {page_size}");
        Ok(Snapshot {
            page_size,
            free: Root::read(&meta[24..]),
            main: Root::read(&meta[24 + Root::LEN..]),
            last_page: u64_at(meta, 120),
            number: u64_at(meta, 128),
        })
    }

    /// The two snapshots of a file, newest first.
    fn read_both(file: &File) -> Result<[Snapshot; 2], Damage> {
        let first = Snapshot::read(file, 0)?;
        let second = Snapshot::read(file, first.page_size as u64)?;
        ensure!(first.page_size == second.page_size, "the headers disagree about the page size");
        Ok(if first.number < second.number { [second, first] } else { [first, second] })
    }
}

/// The file is shorter than its header says. That is normal if the last pages are free; otherwise it is damage.
pub(crate) fn is_short(file: &File) -> Result<bool, Damage> {
    let [newest, _] = Snapshot::read_both(file)?;
    let len = file.metadata().map_err(|error| Damage(error.to_string()))?.len();
    Ok((newest.last_page.saturating_add(1)).saturating_mul(newest.page_size as u64) > len)
}

/// Checks the newest snapshot of a file that no process writes to.
pub(crate) fn check(file: &File) -> Result<(), Damage> {
    let [newest, _] = Snapshot::read_both(file)?;
    Walk::new(file, newest)?.run()
}

/// Checks the snapshot with this number, which a reader keeps alive. `None` if its header was overwritten meanwhile.
pub(crate) fn check_snapshot(file: &File, number: u64) -> Option<Result<(), Damage>> {
    match Snapshot::read_both(file) {
        Err(damage) => Some(Err(damage)),
        Ok(both) => {
            let snapshot = both.into_iter().find(|snapshot| snapshot.number == number)?;
            Some(Walk::new(file, snapshot).and_then(Walk::run))
        }
    }
}

/// The kind of a tree, which decides its rules.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Kind {
    /// Free pages by the number of the commit that freed them.
    Free,
    /// The trees by name.
    Main,
    /// Checked values.
    Named,
}

struct Walk<'f> {
    file: &'f File,
    snapshot: Snapshot,
    used: Vec<u64>,
    names: BTreeSet<Vec<u8>>,
    trees: Vec<Root>,
}

/// The tree being walked, and its counts so far.
struct Visit {
    kind: Kind,
    depth: u16,
    entries: u64,
    last_key: Option<Vec<u8>>,
}

/// The range of keys a page may hold; the end is exclusive.
type Bounds<'k> = (Option<&'k [u8]>, Option<&'k [u8]>);

impl<'f> Walk<'f> {
    fn new(file: &'f File, snapshot: Snapshot) -> Result<Self, Damage> {
        let len = file.metadata().map_err(|error| Damage(error.to_string()))?.len();
        // One bit per page of the file. Pages beyond its end can only be free ones, which are counted by range.
        let pages = len / snapshot.page_size as u64 + 1;
        ensure!(snapshot.last_page >= 1, "the header says the file ends within itself");
        let used = vec![0; (pages / 64 + 1) as usize];
        Ok(Walk { file, snapshot, used, names: BTreeSet::new(), trees: Vec::new() })
    }

    fn run(mut self) -> Result<(), Damage> {
        let (free, main) = (self.snapshot.free, self.snapshot.main);
        ensure!(free.flags == INTEGER_KEY, "the flags of the free list are {:#x}", free.flags);
        ensure!(main.flags == 0, "the flags of the list of trees are {:#x}", main.flags);
        self.tree(main, Kind::Main)?;
        self.tree(free, Kind::Free)?;
        for root in std::mem::take(&mut self.trees) {
            ensure!(root.flags == 0, "the flags of a tree are {:#x}", root.flags);
            self.tree(root, Kind::Named)?;
        }
        let expected: BTreeSet<Vec<u8>> = NAMES.iter().map(|name| name.as_bytes().to_vec()).collect();
        ensure!(self.names.is_empty() || self.names == expected, "the store has other trees than it should");
        Ok(())
    }

    /// Marks a page as used. Each page may be used once.
    fn claim(&mut self, page: u64) -> Result<(), Damage> {
        ensure!((2..=self.snapshot.last_page).contains(&page), "page {page} is out of range");
        if let Some(word) = self.used.get_mut((page / 64) as usize) {
            let bit = 1 << (page % 64);
            ensure!(*word & bit == 0, "page {page} is used twice");
            *word |= bit;
        }
        Ok(())
    }

    fn read(&self, page: u64, skip: usize, len: usize) -> Result<Vec<u8>, Damage> {
        let mut bytes = vec![0; len];
        let at = page.checked_mul(self.snapshot.page_size as u64).and_then(|at| at.checked_add(skip as u64));
        let read = at.map(|at| read_at(self.file, &mut bytes, at));
        ensure!(matches!(read, Some(Ok(()))), "page {page} is beyond the end of the file");
        Ok(bytes)
    }

    fn tree(&mut self, root: Root, kind: Kind) -> Result<(), Damage> {
        if root.page == NO_PAGE {
            ensure!(root.depth == 0 && root.entries == 0, "an empty tree has {} entries", root.entries);
            return Ok(());
        }
        ensure!((1..=DEPTH_MAX).contains(&root.depth), "a tree is {} deep", root.depth);
        let mut visit = Visit { kind, depth: root.depth, entries: 0, last_key: None };
        self.page(root.page, 1, (None, None), &mut visit)?;
        ensure!(visit.entries == root.entries, "a tree of {} entries has {}", root.entries, visit.entries);
        Ok(())
    }

    fn page(&mut self, number: u64, level: u16, bounds: Bounds<'_>, visit: &mut Visit) -> Result<(), Damage> {
        self.claim(number)?;
        let page = self.read(number, 0, self.snapshot.page_size)?;
        ensure!(u64_at(&page, 0) == number, "page {number} says it is page {}", u64_at(&page, 0));
        let leaf = level == visit.depth;
        let flags = u16_at(&page, 10);
        ensure!(
            flags == if leaf { LEAF } else { BRANCH },
            "page {number} has flags {flags:#x} at level {level} of {}",
            visit.depth
        );
        let nodes = self.nodes(number, &page, leaf)?;
        ensure!(nodes.len() >= if leaf { 1 } else { 2 }, "page {number} holds {} nodes", nodes.len());
        if leaf {
            for node in nodes {
                self.leaf_node(number, &page, node, bounds, visit)?;
            }
            return Ok(());
        }
        for (index, node) in nodes.iter().enumerate() {
            // The first key of a branch means "everything before the second" and is ignored.
            let low = if index == 0 { bounds.0 } else { Some(node.key(&page)) };
            let high = nodes.get(index + 1).map(|next| next.key(&page)).or(bounds.1);
            let child = u64::from(u16_at(&page, node.at))
                | u64::from(u16_at(&page, node.at + 2)) << 16
                | u64::from(node.flags) << 32;
            self.page(child, level + 1, (low, high), visit)?;
        }
        Ok(())
    }

    /// The nodes of a page, which must fill its upper part exactly.
    fn nodes(&self, number: u64, page: &[u8], leaf: bool) -> Result<Vec<Node>, Damage> {
        let (lower, upper) = (usize::from(u16_at(page, 12)), usize::from(u16_at(page, 14)));
        let sound = lower >= PAGE_HEADER && lower % 2 == 0 && lower <= upper && upper <= page.len();
        ensure!(sound, "page {number} has bounds {lower} and {upper}");
        let mut nodes = Vec::with_capacity((lower - PAGE_HEADER) / 2);
        for slot in (PAGE_HEADER..lower).step_by(2) {
            let at = usize::from(u16_at(page, slot));
            ensure!(at >= upper && at % 2 == 0 && at + NODE_HEADER <= page.len(), "page {number} has a node at {at}");
            let flags = u16_at(page, at + 4);
            let key_len = usize::from(u16_at(page, at + 6));
            let data_len = u32::from(u16_at(page, at)) | u32::from(u16_at(page, at + 2)) << 16;
            let inline = match (leaf, flags & BIG_DATA) {
                (false, _) => 0,
                (true, BIG_DATA) => 8,
                (true, _) => data_len as usize,
            };
            let len = NODE_HEADER + key_len + inline;
            ensure!(len <= page.len() - at, "page {number} has a node of {len} bytes at {at}");
            nodes.push(Node { at, len, key_len, data_len, flags });
        }
        let mut in_place: Vec<(usize, usize)> =
            nodes.iter().map(|node| (node.at, node.len.next_multiple_of(2))).collect();
        in_place.sort_unstable();
        let mut next = upper;
        for (at, len) in in_place {
            ensure!(at == next, "page {number} has a gap or an overlap at {next}");
            next = at + len;
        }
        ensure!(next == page.len(), "page {number} has a gap at its end");
        Ok(nodes)
    }

    fn leaf_node(
        &mut self,
        number: u64,
        page: &[u8],
        node: Node,
        bounds: Bounds<'_>,
        visit: &mut Visit,
    ) -> Result<(), Damage> {
        let key = node.key(page);
        ensure!((1..=KEY_MAX).contains(&key.len()), "page {number} has a key of {} bytes", key.len());
        let before = |a: &[u8], b: &[u8]| match visit.kind {
            Kind::Free => a.len() == 8 && b.len() == 8 && u64_at(a, 0) < u64_at(b, 0),
            Kind::Main | Kind::Named => a < b,
        };
        let in_order = visit.last_key.as_deref().is_none_or(|last| before(last, key))
            && bounds.0.is_none_or(|low| low == key || before(low, key))
            && bounds.1.is_none_or(|high| before(key, high));
        ensure!(in_order, "page {number} has keys out of order");
        visit.last_key = Some(key.to_vec());
        visit.entries += 1;
        let value = match node.flags {
            BIG_DATA => self.overflow(number, page, node)?,
            0 | SUB_TREE => node.data(page).to_vec(),
            flags => return Err(Damage(format!("page {number} has a node with flags {flags:#x}"))),
        };
        match visit.kind {
            Kind::Named => {
                ensure!(node.flags != SUB_TREE, "page {number} has a tree inside a tree");
                ensure!(unseal(key, &value).is_some(), "page {number} has a value that does not match its checksum");
            }
            Kind::Main => {
                ensure!(
                    node.flags == SUB_TREE && value.len() == Root::LEN,
                    "page {number} has no tree where one should be"
                );
                self.names.insert(key.to_vec());
                self.trees.push(Root::read(&value));
            }
            Kind::Free => {
                ensure!(key.len() == 8 && node.flags != SUB_TREE, "page {number} has a malformed free list");
                ensure!(value.len() >= 8 && value.len() % 8 == 0, "page {number} has a malformed free list");
                let count = u64_at(&value, 0);
                ensure!(count < (value.len() / 8) as u64, "page {number} has a free list of {count} pages");
                for index in 1..=count as usize {
                    self.claim(u64_at(&value, index * 8))?;
                }
            }
        }
        Ok(())
    }

    /// The value on its own pages.
    fn overflow(&mut self, number: u64, page: &[u8], node: Node) -> Result<Vec<u8>, Damage> {
        let first = u64_at(page, node.at + NODE_HEADER + node.key_len);
        let header = self.read(first, 0, PAGE_HEADER)?;
        ensure!(
            u64_at(&header, 0) == first && u16_at(&header, 10) == OVERFLOW,
            "page {first}, named by page {number}, is not a value"
        );
        let pages = u64::from(u32_at(&header, 12));
        let needed = ((PAGE_HEADER - 1 + node.data_len as usize) / self.snapshot.page_size + 1) as u64;
        ensure!(
            pages >= needed && pages <= self.snapshot.last_page,
            "page {first} says it has {pages} pages for {}",
            node.data_len
        );
        for page in first..first + pages {
            self.claim(page)?;
        }
        self.read(first, PAGE_HEADER, node.data_len as usize)
    }
}

#[derive(Clone, Copy)]
struct Node {
    at: usize,
    len: usize,
    key_len: usize,
    data_len: u32,
    flags: u16,
}

impl Node {
    fn key<'p>(&self, page: &'p [u8]) -> &'p [u8] {
        &page[self.at + NODE_HEADER..self.at + NODE_HEADER + self.key_len]
    }

    fn data<'p>(&self, page: &'p [u8]) -> &'p [u8] {
        &page[self.at + NODE_HEADER + self.key_len..self.at + self.len]
    }
}
