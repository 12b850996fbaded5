//! Blocks on disk: where tuples wait for the merge once memory does not suffice.
//!
//! In: blocks, sorted by partition. Out: the same tuples, page by page, to any number of readers.
//! Invariant: what is read is held against a checksum that never left memory before anything is made of it. A page is
//! whole tuples of one block, in its order. The file ends with its last handle.
//! Tried and rejected: LZ4. It made pages of lineitem 2.4 times smaller for 2 ms of a core per MB, written and read. The
//! disk here takes 3 ms per MB while the workers go on. Mixed numbers did not shrink; `packed` shortens them for less.
//! Not here: when to write, what to combine (`build`), what a page looks like (`page`), where files lie (the caller's `Disk`).

mod packed;
mod page;

use std::fmt::Debug;
use std::fs::File;
use std::io::{Error as IoError, ErrorKind};
use std::ops::{Deref, Range};
use std::os::unix::fs::FileExt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;

use crate::addressed::SideBySide;
use crate::error::{Error, Result};
use crate::partition::{Block, Size, Slice, share};
use crate::runtime::counters::Stopwatch;
use crate::runtime::{Counters, Grant};
use crate::shared_blocks::{CoveredBlocks, SharedBlocks};

/// Bytes in memory from which a page is full: partitions of less share one, of which a task may want but one.
const PAGE_BYTES: usize = 32 << 10;
/// Bytes in memory that a page has at most.
const PAGE_BYTES_MAX: usize = 1 << 20;
/// Pages are written together until they have so many bytes.
const WRITE_BYTES: usize = 1 << 20;

/// What the workers of one execution share beside its input: where they write, and what one leaves to another.
pub struct Spill {
    shared: Arc<SpillShared>,
    /// Combined blocks of some workers, for the next one that is short of memory to combine with its own.
    handed: Mutex<Option<CoveredBlocks>>,
    /// What all workers combine while memory is ample.
    shared_blocks: SharedBlocks,
}

/// What all groupings of one execution share.
struct SpillShared {
    disk: Box<dyn Disk>,
    calls: AtomicUsize,
    cancelled: AtomicBool,
    shares: bool,
}

/// Gives files for tuples.
pub trait Disk: Send + Sync {
    /// A new file of which nothing is left once it is dropped, and what to call it in messages.
    fn create(&self) -> std::io::Result<(Box<dyn ScratchFile>, String)>;
}

/// A file that is written from its beginning to its end and read in pieces.
pub trait ScratchFile: Debug + Send + Sync {
    /// Writes all of `bytes` from the `at`th byte of the file on.
    fn write(&self, bytes: &[u8], at: u64) -> std::io::Result<()>;
    /// Fills `bytes` from the `at`th byte of the file on.
    fn read(&self, bytes: &mut [u8], at: u64) -> std::io::Result<()>;
}

impl ScratchFile for File {
    fn write(&self, bytes: &[u8], at: u64) -> std::io::Result<()> {
        self.write_all_at(bytes, at)
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
        self.read_exact_at(bytes, at)
    }
}

impl Spill {
    /// On that disk. Where aggregates rely on the order of rows, workers do not share blocks: they would
    /// come back after later rows.
    pub fn new(disk: impl Disk + 'static, shares: bool) -> Self {
        let shared = SpillShared {
            disk: Box::new(disk),
            calls: AtomicUsize::new(0),
            cancelled: AtomicBool::new(false),
            shares,
        };
        Self {
            shared: Arc::new(shared),
            handed: Mutex::default(),
            shared_blocks: SharedBlocks::default(),
        }
    }

    /// For another grouping of the same execution, whose blocks are none of this one's.
    #[must_use]
    pub fn beside(&self) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            handed: Mutex::default(),
            shared_blocks: SharedBlocks::default(),
        }
    }

    /// Nobody wants the tuples any more: writing ends with the next page.
    pub fn cancel(&self) {
        self.shared.cancelled.store(true, Ordering::Relaxed);
    }

    /// True if a worker may hand blocks to another.
    pub(crate) fn shares(&self) -> bool {
        self.shared.shares
    }

    /// Blocks of all workers.
    pub(crate) fn shared_blocks(&self) -> &SharedBlocks {
        &self.shared_blocks
    }

    /// True once nobody wants the tuples any more.
    pub(crate) fn is_cancelled(&self) -> bool {
        self.shared.cancelled.load(Ordering::Relaxed)
    }

    /// What a worker has handed over; it is the caller's now.
    pub(crate) fn take_handed(&self) -> Option<CoveredBlocks> {
        self.handed.lock().take()
    }

    /// Hands blocks over, unless others lie there.
    pub(crate) fn hand(&self, blocks: CoveredBlocks) -> Option<CoveredBlocks> {
        let mut handed = self.handed.lock();
        match *handed {
            Some(_) => Some(blocks),
            None => {
                *handed = Some(blocks);
                None
            }
        }
    }

    /// How often memory was short so far.
    pub(crate) fn calls(&self) -> usize {
        self.shared.calls.load(Ordering::Relaxed)
    }

    /// Asks all workers to write what they hold.
    pub(crate) fn call(&self) -> usize {
        self.shared.calls.fetch_add(1, Ordering::Relaxed) + 1
    }
}

/// A file and its name for messages.
#[derive(Debug)]
struct NamedFile {
    file: Box<dyn ScratchFile>,
    name: String,
}

impl NamedFile {
    fn failed(&self, doing: &'static str, error: IoError) -> Error {
        Error::Disk {
            doing,
            name: self.name.clone(),
            error,
        }
    }
}

/// One worker's file, while it is written.
pub(crate) struct SpillFile {
    spill: Arc<Spill>,
    scratch: Option<Arc<NamedFile>>,
    end: u64,
    /// Pages that are not written yet.
    buffer: Vec<u8>,
}

impl SpillFile {
    /// No file yet: the first block makes one.
    pub(crate) fn new(spill: Arc<Spill>) -> Self {
        Self {
            spill,
            scratch: None,
            end: 0,
            buffer: Vec::new(),
        }
    }

    /// What all workers share.
    pub(crate) fn shared(&self) -> &Arc<Spill> {
        &self.spill
    }

    /// Writes neighbouring blocks as one where they can stand in one; their order stays.
    pub(crate) fn write(
        &mut self,
        blocks: &[Block],
        counters: &mut Counters,
    ) -> Result<Vec<Stored>> {
        let (mut left, mut stored) = (blocks, Vec::new());
        while let Some(first) = left.first() {
            let mut tuples = first.len();
            let same = left[1..].iter().take_while(|block| {
                tuples += block.len();
                first.mixes(block) && u32::try_from(tuples).is_ok()
            });
            let (run, rest) = left.split_at(1 + same.count());
            stored.push(Stored::Disk(self.write_run(run, counters)?));
            left = rest;
        }
        Ok(stored)
    }

    /// Blocks of one shape, partition by partition, so that a task finds its tuples side by side.
    fn write_run(&mut self, blocks: &[Block], counters: &mut Counters) -> Result<SpilledBlock> {
        let mut stopwatch = Stopwatch::start();
        let scratch = self.scratch()?;
        let (mut pages, mut tuples) = (Vec::new(), 0);
        for slices in cut(blocks) {
            if self.spill.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let from = self.buffer.len();
            page::encode(&slices, &mut self.buffer)?;
            let bytes = &self.buffer[from..];
            let before = tuples;
            tuples += slices.iter().map(Slice::len).sum::<usize>();
            pages.push(Page {
                tuples: before..tuples,
                at: self.end + from as u64,
                bytes: bytes.len(),
                checksum: crc32fast::hash(bytes),
            });
            if self.buffer.len() >= WRITE_BYTES {
                self.flush(&scratch)?;
            }
        }
        self.flush(&scratch)?;
        counters.spilled_bytes += pages.iter().map(|page| page.bytes as u64).sum::<u64>();
        counters.spills += 1;
        stopwatch.lap(&mut counters.spill_ns);
        Ok(SpilledBlock {
            scratch,
            pages,
            template: page::template(blocks),
            tuples,
            bytes: blocks.iter().map(Block::live_bytes).sum(),
        })
    }

    fn scratch(&mut self) -> Result<Arc<NamedFile>> {
        if let Some(scratch) = &self.scratch {
            return Ok(Arc::clone(scratch));
        }
        let (file, name) = self
            .spill
            .shared
            .disk
            .create()
            .map_err(|error| Error::Disk {
                doing: "make a file in",
                name: "the temporary folder".to_string(),
                error,
            })?;
        Ok(Arc::clone(
            self.scratch.insert(Arc::new(NamedFile { file, name })),
        ))
    }

    fn flush(&mut self, scratch: &NamedFile) -> Result<()> {
        scratch
            .file
            .write(&self.buffer, self.end)
            .map_err(|error| scratch.failed("write to", error))?;
        self.end += self.buffer.len() as u64;
        self.buffer.clear();
        Ok(())
    }
}

/// The tuples of each page: neighbouring partitions of all blocks, or a part of one that is larger than a page.
fn cut(blocks: &[Block]) -> Vec<Vec<Slice<'_>>> {
    let bytes: usize = blocks.iter().map(Block::bytes).sum();
    let tuples: usize = blocks.iter().map(Block::len).sum();
    let tuple_bytes = (bytes / tuples.max(1)).max(1);
    let full = PAGE_BYTES.div_ceil(tuple_bytes);
    let most = full.max(PAGE_BYTES_MAX / tuple_bytes);
    let (mut pages, mut page, mut held) = (Vec::new(), Vec::new(), 0);
    for partition in 0..blocks.first().map_or(0, Block::partitions) {
        for block in blocks {
            let mut tuples = block.tuples(&(partition..partition + 1));
            while !tuples.is_empty() {
                let end = tuples.end.min(tuples.start + most - held);
                page.push(block.slice(tuples.start..end));
                held += end - tuples.start;
                tuples.start = end;
                if held == most {
                    pages.push(std::mem::take(&mut page));
                    held = 0;
                }
            }
        }
        if held >= full {
            pages.push(std::mem::take(&mut page));
            held = 0;
        }
    }
    if held > 0 {
        pages.push(page);
    }
    pages
}

/// A block on disk.
#[derive(Debug)]
pub struct SpilledBlock {
    scratch: Arc<NamedFile>,
    pages: Vec<Page>,
    /// The block without its tuples: kinds and types of columns, where partitions begin.
    template: Block,
    tuples: usize,
    bytes: usize,
}

/// Neighbouring tuples as one piece of a file.
#[derive(Debug)]
pub(crate) struct Page {
    tuples: Range<usize>,
    at: u64,
    bytes: usize,
    checksum: u32,
}

/// Tuples that wait for the merge.
#[derive(Debug)]
pub enum Stored {
    /// In memory.
    Memory(Block),
    /// On disk.
    Disk(SpilledBlock),
}

/// Some of the tuples of a task: a range of one block, or of one page.
pub(crate) enum StoredRange<'a> {
    Memory(&'a Block, Range<usize>),
    Disk(&'a SpilledBlock, &'a Page, Range<usize>),
}

impl Stored {
    /// Number of tuples.
    pub fn len(&self) -> usize {
        match self {
            Self::Memory(block) => block.len(),
            Self::Disk(spilled) => spilled.tuples,
        }
    }

    /// True if there is no tuple.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes that the tuples have in memory.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Memory(block) => block.bytes(),
            Self::Disk(spilled) => spilled.bytes,
        }
    }

    /// Tuples of each partition and their share of the bytes.
    pub(crate) fn sizes(&self, partitions: usize) -> impl Iterator<Item = Size> {
        let (all, bytes) = (self.len(), self.bytes());
        (0..partitions).map(move |at| share(self.tuples(&(at..at + 1)).len(), all, bytes))
    }

    /// True if reading the tuples takes a disk.
    pub fn is_on_disk(&self) -> bool {
        matches!(self, Self::Disk(_))
    }

    /// Number of partitions.
    pub fn partitions(&self) -> usize {
        self.block().partitions()
    }

    /// True if no two of the tuples have the same key.
    pub fn distinct(&self) -> bool {
        self.block().distinct()
    }

    /// Tuples of a range of partitions.
    pub fn tuples(&self, partitions: &Range<usize>) -> Range<usize> {
        self.block().tuples(partitions)
    }

    fn block(&self) -> &Block {
        match self {
            Self::Memory(block) => block,
            Self::Disk(spilled) => &spilled.template,
        }
    }

    /// Where the tuples of a range of partitions are; none of the pieces is empty.
    pub(crate) fn sources<'a>(&'a self, partitions: &Range<usize>) -> Vec<StoredRange<'a>> {
        let tuples = self.tuples(partitions);
        if tuples.is_empty() {
            return Vec::new();
        }
        let spilled = match self {
            Self::Memory(block) => return vec![StoredRange::Memory(block, tuples)],
            Self::Disk(spilled) => spilled,
        };
        let pages = &spilled.pages;
        let first = pages.partition_point(|page| page.tuples.end <= tuples.start);
        let pages = pages[first..].iter();
        pages
            .take_while(|page| page.tuples.start < tuples.end)
            .map(|page| {
                let from = tuples.start.max(page.tuples.start) - page.tuples.start;
                let to = tuples.end.min(page.tuples.end) - page.tuples.start;
                StoredRange::Disk(spilled, page, from..to)
            })
            .collect()
    }
}

/// Blocks and what they have in each partition.
#[derive(Debug, Default)]
pub(crate) struct Blocks {
    pub stored: Vec<Stored>,
    pub sizes: Vec<Size>,
    pub bytes_in_memory: usize,
    /// True if some are on disk.
    pub is_on_disk: bool,
}

impl Blocks {
    /// Of so many partitions each.
    pub(crate) fn new(stored: Vec<Stored>, partitions: usize) -> Self {
        let mut blocks = Self {
            sizes: vec![Size::default(); partitions],
            ..Self::default()
        };
        for one in stored {
            add(&mut blocks.sizes, one.sizes(partitions));
            if one.is_on_disk() {
                blocks.is_on_disk = true;
            } else {
                blocks.bytes_in_memory += one.bytes();
            }
            blocks.stored.push(one);
        }
        blocks
    }

    /// Takes blocks of as many partitions in.
    pub(crate) fn join(&mut self, other: Self) {
        self.sizes.resize(other.sizes.len(), Size::default());
        add(&mut self.sizes, other.sizes.into_iter());
        self.stored.extend(other.stored);
        self.bytes_in_memory += other.bytes_in_memory;
        self.is_on_disk |= other.is_on_disk;
    }
}

fn add(sizes: &mut [Size], others: impl Iterator<Item = Size>) {
    for (size, other) in sizes.iter_mut().zip(others) {
        *size = size.plus(other);
    }
}

/// Blocks whose partitions are told apart by the same bits of the hash.
pub(crate) struct PartitionLevel {
    pub blocks: Blocks,
    /// In the place of blocks: a task's partitions are addresses.
    pub by_address: Option<SideBySide>,
    /// The hash's top bits that partitions of these blocks are named by, and those above them.
    pub bits: u32,
    /// Tuples of all blocks.
    pub tuples: usize,
    /// Tuples of the task that these are sub-partitions of.
    pub of_tuples: usize,
    /// Covers the blocks.
    pub _grant: Option<Grant>,
}

impl PartitionLevel {
    /// True of blocks as builds made them.
    pub(crate) fn is_top(&self) -> bool {
        self.of_tuples == usize::MAX
    }
}

/// A block whose tuples can be looked at.
#[derive(Debug)]
pub(crate) enum Opened<'a> {
    /// It was in memory.
    Held(&'a Block),
    /// It was read.
    Read(Block),
}

impl Opened<'_> {
    /// Bytes that it adds to those of the blocks in memory.
    pub(crate) fn bytes(&self) -> usize {
        match self {
            Self::Held(_) => 0,
            Self::Read(block) => block.bytes(),
        }
    }
}

impl Deref for Opened<'_> {
    type Target = Block;

    fn deref(&self) -> &Block {
        match self {
            Self::Held(block) => block,
            Self::Read(block) => block,
        }
    }
}

impl<'a> StoredRange<'a> {
    /// Number of tuples.
    pub(crate) fn len(&self) -> usize {
        match self {
            Self::Memory(_, tuples) | Self::Disk(_, _, tuples) => tuples.len(),
        }
    }

    /// Some of the tuples, counted from the first.
    pub(crate) fn part(&self, some: &Range<usize>) -> Self {
        let within = |tuples: &Range<usize>| tuples.start + some.start..tuples.start + some.end;
        match self {
            Self::Memory(block, tuples) => Self::Memory(block, within(tuples)),
            Self::Disk(spilled, page, tuples) => Self::Disk(spilled, page, within(tuples)),
        }
    }

    /// The tuples as a range of a block; what lies on disk is read.
    pub(crate) fn open(&self, counters: &mut Counters) -> Result<(Opened<'a>, Range<usize>)> {
        match self {
            Self::Memory(block, tuples) => Ok((Opened::Held(block), tuples.clone())),
            Self::Disk(spilled, page, tuples) => {
                let read = spilled.read(page, counters)?;
                Ok((Opened::Read(read), tuples.clone()))
            }
        }
    }
}

impl SpilledBlock {
    fn read(&self, page: &Page, counters: &mut Counters) -> Result<Block> {
        let mut stopwatch = Stopwatch::start();
        let mut bytes = vec![0; page.bytes];
        let read = self.scratch.file.read(&mut bytes, page.at);
        read.map_err(|error| self.scratch.failed("read from", error))?;
        if crc32fast::hash(&bytes) != page.checksum {
            let changed = IoError::new(
                ErrorKind::InvalidData,
                "it has other bytes than were written",
            );
            return Err(self.scratch.failed("read from", changed));
        }
        counters.read_bytes += page.bytes as u64;
        let block = page::decode(bytes, page.tuples.len(), &self.template)?;
        stopwatch.lap(&mut counters.read_ns);
        Ok(block)
    }
}

#[cfg(test)]
impl StoredRange<'_> {
    /// The keys, which have one word.
    pub(crate) fn words(&self) -> Vec<u64> {
        use crate::keys::compact::KeyScratch;
        use crate::keys::{KeyRows, PackedRows};
        let opened = self.open(&mut Counters::default());
        let (block, tuples) = opened.expect("read");
        let mut scratch = KeyScratch::default();
        let KeyRows::Packed(PackedRows::One(words)) = block.slice(tuples).keys(&mut scratch).0
        else {
            panic!("keys of one word")
        };
        words.keys.as_flattened().to_vec()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::keys::{CompactKeys, EncodedKeys};

    /// Keys of 8 bytes; partitions of these numbers of tuples.
    fn block(partitions: &[u32]) -> Block {
        let mut offsets = vec![0];
        for tuples in partitions {
            offsets.push(offsets[offsets.len() - 1] + tuples);
        }
        let tuples = offsets[partitions.len()];
        let keys: Vec<_> = (0..u64::from(tuples)).map(|key| [key; 1]).collect();
        Block::new(
            CompactKeys::FixedWidth {
                keys: EncodedKeys::of_fixed_width(keys, Vec::new()),
                nulls: Vec::new(),
            },
            Vec::new(),
            offsets,
            true,
        )
    }

    struct Folder(tempfile::TempDir);

    impl Disk for Folder {
        fn create(&self) -> std::io::Result<(Box<dyn ScratchFile>, String)> {
            let path = self.0.path().join("records");
            let mut options = File::options();
            let file = options.read(true).write(true).create(true).open(&path)?;
            Ok((Box::new(file), path.display().to_string()))
        }
    }

    fn folder() -> (std::path::PathBuf, SpillFile) {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("records");
        (
            path,
            SpillFile::new(Arc::new(Spill::new(Folder(folder), false))),
        )
    }

    #[test]
    fn pages_are_whole_partitions_of_all_blocks_unless_one_is_larger() {
        let lengths = |blocks: &[Block]| -> Vec<usize> {
            let pages = cut(blocks).into_iter();
            pages
                .map(|page| page.iter().map(Slice::len).sum())
                .collect()
        };
        // 8 bytes a tuple, and the offsets.
        let page = (PAGE_BYTES / 8) as u32;
        let small = [
            block(&[page / 2, page / 2 + 9, 0, 5]),
            block(&[page / 2, 7, 0, 5]),
        ];
        assert_eq!(lengths(&small), [page as usize, page as usize / 2 + 26]);
        let large = lengths(&[block(&[3, page * 160, 7])]);
        assert_eq!(large.iter().sum::<usize>(), page as usize * 160 + 10);
        assert!(large.len() >= 5 && large.iter().all(|page| *page > 0));
        assert!(cut(&[block(&[0, 0])]).is_empty() && cut(&[]).is_empty());
    }

    /// Of blocks of `block`, keys of one word.
    fn keys_of(stored: &Stored, partitions: Range<usize>) -> Vec<u64> {
        let mut keys = Vec::new();
        for source in stored.sources(&partitions) {
            keys.extend(source.words());
        }
        keys
    }

    #[test]
    fn a_task_reads_its_own_partitions_alone() {
        let (_, mut file) = folder();
        let counters = &mut Counters::default();
        let page = (PAGE_BYTES / 16) as u32;
        let blocks = [
            block(&[10, page, 3, 0, page * 20, 5]),
            block(&[0, 1, 1, 0, 1, 1]),
        ];
        let mut written = file.write(&blocks, counters).expect("written");
        let stored = written.pop().expect("blocks of one shape");
        assert!(written.is_empty() && !stored.distinct());
        let read = |partitions| keys_of(&stored, partitions);
        let page = u64::from(page);
        let expected = |own: Range<u64>, other: Range<u64>| own.chain(other).collect::<Vec<_>>();
        assert_eq!(read(0..6).len(), stored.len());
        assert_eq!(read(0..1), expected(0..10, 0..0));
        assert_eq!(read(2..4), expected(page + 10..page + 13, 1..2));
        assert_eq!(read(4..5), expected(page + 13..page * 21 + 13, 2..3));
        assert_eq!(read(5..6), expected(page * 21 + 13..page * 21 + 18, 3..4));
        assert!(read(3..4).is_empty());
    }

    #[test]
    fn tuples_that_a_block_has_dropped_are_not_written() {
        let (_, mut file) = folder();
        let mut first = block(&[3, 2, 4]);
        first.drop_until(1);
        let blocks = [first, block(&[0, 1, 2])];
        let written = file.write(&blocks, &mut Counters::default());
        let stored = &written.expect("written")[0];
        assert_eq!(stored.len(), 9);
        let tuples = |partition: usize| stored.tuples(&(partition..partition + 1));
        assert_eq!([tuples(0), tuples(1), tuples(2)], [0..0, 0..3, 3..9]);
        assert_eq!(keys_of(stored, 0..3), [3, 4, 0, 5, 6, 7, 8, 1, 2]);
    }

    struct FullDisk;

    impl Disk for FullDisk {
        fn create(&self) -> std::io::Result<(Box<dyn ScratchFile>, String)> {
            let file = File::options().read(true).write(true).open("/dev/full")?;
            Ok((Box::new(file), "/dev/full".to_string()))
        }
    }

    #[test]
    fn a_full_disk_is_an_error_that_names_the_file() {
        let mut file = SpillFile::new(Arc::new(Spill::new(FullDisk, false)));
        let written = file.write(&[block(&[100])], &mut Counters::default());
        let error = written.expect_err("no room").to_string();
        assert!(
            error.contains("/dev/full") && error.contains("space"),
            "{error}"
        );
    }

    #[test]
    fn a_changed_or_shorter_file_is_an_error_that_names_it() {
        for change in [0, 1] {
            let (path, mut file) = folder();
            let written = file.write(&[block(&[100])], &mut Counters::default());
            let stored = &written.expect("written")[0];
            let other = File::options().write(true).open(&path).expect("the file");
            match change {
                0 => other.write_all_at(&[0xff; 3], 50).expect("a write"),
                _ => other.set_len(100).expect("shorter"),
            }
            let sources = stored.sources(&(0..1));
            let error = sources[0].open(&mut Counters::default());
            let error = error.expect_err("other bytes").to_string();
            assert!(error.contains(&path.display().to_string()), "{error}");
        }
    }
}
