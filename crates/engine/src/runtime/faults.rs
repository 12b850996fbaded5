//! Refusals on request, for tests: a call that a grouping makes to its surroundings fails.
//!
//! In: the test option `group_by_fault`, such as `write:3`, the third write, or `grow:2+`, the second growth of memory and
//! all after it. Out: a disk that refuses, and whether memory does.
//! Invariant: each run of a grouping counts its own calls; what is refused has not happened.
//! Not here: what follows from a refusal (`grouse_groupby`).

use std::fmt;
use std::io::{Error as IoError, ErrorKind};
use std::str::FromStr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use grouse_groupby::{Disk, ScratchFile};

/// What a grouping asks of its surroundings.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum RefusableCall {
    /// A new file.
    Create,
    /// A write to one.
    Write,
    /// A read of one.
    Read,
    /// More memory.
    Grow,
}

/// Their names.
const CALLS: [(&str, RefusableCall); 4] = [
    ("create", RefusableCall::Create),
    ("write", RefusableCall::Write),
    ("read", RefusableCall::Read),
    ("grow", RefusableCall::Grow),
];

/// The calls that fail.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Fault {
    call: RefusableCall,
    /// The first one, from 1.
    first: usize,
    /// Whether those after it fail as well.
    lasting: bool,
}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let named = CALLS.iter().find(|(_, call)| *call == self.call);
        let name = named.map_or("", |(name, _)| name);
        write!(
            f,
            "{name}:{}{}",
            self.first,
            if self.lasting { "+" } else { "" }
        )
    }
}

impl FromStr for Fault {
    type Err = String;

    fn from_str(text: &str) -> Result<Fault, String> {
        let parsed = || {
            let (name, number) = text.split_once(':')?;
            let (_, call) = CALLS.iter().find(|(known, _)| *known == name)?;
            let (number, lasting) = match number.strip_suffix('+') {
                Some(number) => (number, true),
                None => (number, false),
            };
            let first = number.parse().ok().filter(|first| *first > 0)?;
            Some(Fault {
                call: *call,
                first,
                lasting,
            })
        };
        let names = CALLS.map(|(name, _)| name).join(", ");
        parsed().ok_or_else(|| format!("must be CALL:N or CALL:N+, with a CALL of {names}"))
    }
}

/// The fault of one run, and how many of its calls were made.
pub(crate) struct Faults {
    fault: Fault,
    calls: AtomicUsize,
}

impl Faults {
    pub fn new(fault: Fault) -> Arc<Faults> {
        Arc::new(Faults {
            fault,
            calls: AtomicUsize::new(0),
        })
    }

    /// True if this call fails.
    pub fn refuse(&self, call: RefusableCall) -> bool {
        if call != self.fault.call {
            return false;
        }
        let number = self.calls.fetch_add(1, Ordering::Relaxed) + 1;
        number == self.fault.first || self.fault.lasting && number > self.fault.first
    }

    fn allow(&self, call: RefusableCall) -> std::io::Result<()> {
        match self.refuse(call) {
            true => Err(IoError::new(ErrorKind::StorageFull, "refused on request")),
            false => Ok(()),
        }
    }
}

/// A disk some of whose calls fail.
pub(crate) struct FaultyDisk<D> {
    pub disk: D,
    pub faults: Arc<Faults>,
}

impl<D: Disk> Disk for FaultyDisk<D> {
    fn create(&self) -> std::io::Result<(Box<dyn ScratchFile>, String)> {
        self.faults.allow(RefusableCall::Create)?;
        let (file, name) = self.disk.create()?;
        let faults = Arc::clone(&self.faults);
        Ok((Box::new(FaultyFile { file, faults }), name))
    }
}

struct FaultyFile {
    file: Box<dyn ScratchFile>,
    faults: Arc<Faults>,
}

impl fmt::Debug for FaultyFile {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.file.fmt(f)
    }
}

impl ScratchFile for FaultyFile {
    fn write(&self, bytes: &[u8], at: u64) -> std::io::Result<()> {
        self.faults.allow(RefusableCall::Write)?;
        self.file.write(bytes, at)
    }

    fn read(&self, bytes: &mut [u8], at: u64) -> std::io::Result<()> {
        self.faults.allow(RefusableCall::Read)?;
        self.file.read(bytes, at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn faults_are_read_as_they_are_written() {
        for text in ["create:1", "write:20+", "read:3", "grow:1+"] {
            assert_eq!(text.parse::<Fault>().unwrap().to_string(), text);
        }
        for text in ["", "write", "write:0", "write:+", "seek:1", "write:1++"] {
            let error = text.parse::<Fault>().unwrap_err();
            assert!(error.contains("create, write, read, grow"), "{error}");
        }
    }

    #[test]
    fn the_calls_that_fail_are_those_that_the_fault_names() {
        for (text, failing) in [("write:2", vec![2]), ("write:2+", vec![2, 3, 4])] {
            let faults = Faults::new(text.parse().unwrap());
            let refused = |number: &usize| {
                assert!(!faults.refuse(RefusableCall::Read), "{text}: read {number}");
                faults.refuse(RefusableCall::Write)
            };
            let found: Vec<_> = (1..=4).filter(refused).collect();
            assert_eq!(found, failing, "{text}");
        }
    }
}
