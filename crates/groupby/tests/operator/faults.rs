//! Everything that a group-by asks of its surroundings, refused once or from then on.
//!
//! In: the nth file, write, read or growth of memory that fails. Out: the right groups or the right error; in both cases
//! no file and no byte of the budget is left.
//! Not here: damaged files (`spill.rs`); whole queries.

use std::io::{Error as IoError, ErrorKind};
use std::sync::atomic::AtomicUsize;

use super::*;

/// What is refused.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Call {
    Create,
    Write,
    Read,
    Grow,
}

/// Which calls are refused.
#[derive(Debug, Clone, Copy)]
struct Fault {
    call: Call,
    /// The first one, from 1.
    first: usize,
    /// Whether those after it are refused as well.
    lasting: bool,
}

/// Counts calls and files, and refuses.
#[derive(Debug)]
struct Surroundings {
    fault: Fault,
    calls: AtomicUsize,
    files: AtomicUsize,
    bytes: AtomicUsize,
}

impl Surroundings {
    fn refuses(&self, call: Call) -> bool {
        if call != self.fault.call {
            return false;
        }
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        number == self.fault.first || self.fault.lasting && number > self.fault.first
    }

    fn allow(&self, call: Call) -> std::io::Result<()> {
        match self.refuses(call) {
            true => Err(IoError::new(ErrorKind::StorageFull, "refused")),
            false => Ok(()),
        }
    }
}

struct Folder(Arc<Surroundings>);

impl Disk for Folder {
    fn create(&self) -> std::io::Result<(Box<dyn ScratchFile>, String)> {
        self.0.allow(Call::Create)?;
        self.0.files.fetch_add(1, Ordering::Relaxed);
        let file = Counted(tempfile::tempfile()?, Arc::clone(&self.0));
        Ok((Box::new(file), "a file".to_string()))
    }
}

#[derive(Debug)]
struct Counted(std::fs::File, Arc<Surroundings>);

impl ScratchFile for Counted {
    fn write(&self, bytes: &[u8], at: u64) -> std::io::Result<()> {
        self.1.allow(Call::Write)?;
        self.0.write(bytes, at)
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
        self.1.allow(Call::Read)?;
        self.0.read(bytes, at)
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        self.1.files.fetch_sub(1, Ordering::Relaxed);
    }
}

struct Memory(Arc<Surroundings>);

impl Budget for Memory {
    fn grow(&self, bytes: usize) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
        self.0.allow(Call::Grow)?;
        self.insist(bytes);
        Ok(())
    }

    fn insist(&self, bytes: usize) {
        self.0.bytes.fetch_add(bytes, Ordering::Relaxed);
    }

    fn shrink(&self, bytes: usize) {
        self.0.bytes.fetch_sub(bytes, Ordering::Relaxed);
    }

    fn free(&self) -> usize {
        64 << 20
    }
}

/// Runs with one fault; true if it was met.
fn meets(case: &Case, how: &How, expected: &Rows, fault: Fault) -> bool {
    let around = Arc::new(Surroundings {
        fault,
        calls: AtomicUsize::new(0),
        files: AtomicUsize::new(0),
        bytes: AtomicUsize::new(0),
    });
    let means = Means {
        budget: Arc::new(Memory(Arc::clone(&around))),
        spill: Arc::new(Spill::new(Folder(Arc::clone(&around)), true)),
    };
    match run(case, how, &means) {
        Ok(groups) => assert_eq!(&groups, expected, "{fault:?}"),
        Err(Error::Memory { .. }) => assert_eq!(fault.call, Call::Grow, "{fault:?}"),
        Err(Error::Disk { error, .. }) => {
            assert_ne!(fault.call, Call::Grow, "{fault:?}");
            assert_eq!(error.kind(), ErrorKind::StorageFull, "{fault:?}");
        }
        Err(other) => panic!("{fault:?}: {other}"),
    }
    assert_eq!(around.files.load(Ordering::Relaxed), 0, "{fault:?}: files");
    assert_eq!(around.bytes.load(Ordering::Relaxed), 0, "{fault:?}: bytes");
    around.calls.load(Ordering::Relaxed) >= fault.first
}

#[test]
fn a_fault_ends_in_the_right_groups_or_the_right_error() {
    let small = How {
        table: TableKind::Auto,
        sizes: Sizes::spilling(),
        workers: 2,
        batch_rows: 500,
    };
    let large = How {
        sizes: normal(),
        batch_rows: 8192,
        ..small
    };
    // Pieces of a task, in memory and on disk.
    let in_pieces = How {
        sizes: hot_keys::bypassing(7),
        batch_rows: 50,
        ..small
    };
    let in_pieces_on_disk = How {
        sizes: Sizes {
            held_bytes: 0,
            ..hot_keys::bypassing(7)
        },
        batch_rows: 500,
        ..small
    };
    let hot = |kinds| hot_keys::hot_case(kinds, 6_000, hot_keys::Hot::All);
    let even = |kinds, rows| case(kinds, rows, 1_000_000, true, 23);
    let disk = vec![Call::Create, Call::Write, Call::Read];
    for (kinds, case, how, refused) in [
        ("number", even(&[0], 9_000), &small, disk.clone()),
        ("string, float", even(&[9, 5], 9_000), &small, disk.clone()),
        ("number", even(&[0], 200_000), &large, vec![Call::Grow]),
        (
            "string, number, list",
            even(&[9, 0, 13], 100_000),
            &large,
            vec![Call::Grow],
        ),
        ("hot number", hot(&[0]), &in_pieces, vec![Call::Grow]),
        ("hot string", hot(&[9]), &in_pieces_on_disk, disk),
    ] {
        let expected = twin(&case.keys, &case.values, &case.filter);
        for call in refused {
            let mut met = 0;
            for lasting in [false, true] {
                let (mut first, mut next) = (1, 2);
                let fault = |first| Fault {
                    call,
                    first,
                    lasting,
                };
                while meets(&case, how, &expected, fault(first)) {
                    met += 1;
                    (first, next) = (next, first + next);
                }
            }
            assert!(met >= 4, "{kinds}: {call:?} {met} times");
        }
    }
}
