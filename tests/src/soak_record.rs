//! The record of the long runs: what each part has done in all, and the seed with which it goes on.
//!
//! In: a file under tests/record, what a round did. Out: the seed of the next round; the file with that round in it.
//! Invariant: a round counts once it is over, and the file is written anew and put in its place: a run that is ended goes on where it was.
//! Not here: what the parts do (bin/grouse-soak).

use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::time::Duration;

const HEAD: &str = "# What the long runs did in all: `make soak` goes on from here and adds what it does.\n\
    # part\tnext seed\tdone\tfaults\tworst ms\tseconds\n";

/// What one round of a part did.
#[derive(Debug, Default, Clone, Copy)]
pub struct Round {
    /// Seeds that it used up.
    pub seeds: u64,
    /// What it counts: queries, files of each kind, writes, answers.
    pub done: u64,
    /// The longest time of one, where that is looked at.
    pub worst: Duration,
}

#[derive(Debug, Clone, PartialEq, Eq)]
struct PartRecord {
    name: String,
    next: u64,
    done: u64,
    faults: u64,
    worst_ms: u64,
    seconds: u64,
}

/// All parts.
#[derive(Debug)]
pub struct SoakRecord {
    path: PathBuf,
    parts: Vec<PartRecord>,
}

impl SoakRecord {
    /// The record in this file; an empty one if there is none.
    pub fn open(path: &Path) -> Result<SoakRecord, String> {
        let text = match fs::read_to_string(path) {
            Ok(text) => text,
            Err(error) if error.kind() == std::io::ErrorKind::NotFound => String::new(),
            Err(error) => return Err(format!("{}: {error}", path.display())),
        };
        let lines = text.lines().filter(|line| !line.starts_with('#'));
        let parts = lines.map(|line| {
            parsed(line).ok_or_else(|| format!("{}: no record: {line}", path.display()))
        });
        Ok(SoakRecord {
            path: path.to_owned(),
            parts: parts.collect::<Result<_, _>>()?,
        })
    }

    /// The seed with which a part goes on.
    pub fn next_seed(&self, part: &str) -> u64 {
        let known = self.parts.iter().find(|known| known.name == part);
        known.map_or(0, |known| known.next)
    }

    /// What a part has done in all.
    pub fn done(&self, part: &str) -> u64 {
        let known = self.parts.iter().find(|known| known.name == part);
        known.map_or(0, |known| known.done)
    }

    /// Adds a round, and writes the file. A round that found a fault counts as that fault alone.
    pub fn add(
        &mut self,
        part: &str,
        round: &Result<Round, Round>,
        took: Duration,
    ) -> Result<(), String> {
        let at = self.parts.iter().position(|known| known.name == part);
        let at = at.unwrap_or_else(|| {
            self.parts.push(PartRecord {
                name: part.to_owned(),
                next: 0,
                done: 0,
                faults: 0,
                worst_ms: 0,
                seconds: 0,
            });
            self.parts.len() - 1
        });
        let known = &mut self.parts[at];
        known.seconds += took.as_secs();
        match round {
            Ok(round) => {
                known.next += round.seeds;
                known.done += round.done;
                known.worst_ms = known.worst_ms.max(round.worst.as_millis() as u64);
            }
            Err(round) => {
                known.next += round.seeds;
                known.faults += 1;
            }
        }
        self.write()
    }

    fn write(&self) -> Result<(), String> {
        let mut text = HEAD.to_owned();
        for part in &self.parts {
            let PartRecord {
                name,
                next,
                done,
                faults,
                worst_ms,
                seconds,
            } = part;
            writeln!(
                text,
                "{name}\t{next}\t{done}\t{faults}\t{worst_ms}\t{seconds}"
            )
            .map_err(|error| error.to_string())?;
        }
        let beside = self.path.with_extension("new");
        let written = fs::write(&beside, text).and_then(|()| fs::rename(&beside, &self.path));
        written.map_err(|error| format!("{}: {error}", self.path.display()))
    }
}

fn parsed(line: &str) -> Option<PartRecord> {
    let mut fields = line.split('\t');
    let name = fields.next()?.to_owned();
    let mut number = || fields.next()?.parse().ok();
    Some(PartRecord {
        name,
        next: number()?,
        done: number()?,
        faults: number()?,
        worst_ms: number()?,
        seconds: number()?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounds_add_up_from_run_to_run() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("soak.tsv");
        let round = Round {
            seeds: 10,
            done: 9,
            worst: Duration::from_millis(40),
        };
        for run in 1..=3 {
            let mut record = SoakRecord::open(&path).unwrap();
            assert_eq!(record.next_seed("stops"), 10 * (run - 1));
            let took = Duration::from_secs(7);
            record.add("stops", &Ok(round), took).unwrap();
            record.add("writes", &Err(round), took).unwrap();
        }
        let record = SoakRecord::open(&path).unwrap();
        assert_eq!((record.done("stops"), record.done("writes")), (27, 0));
        let text = fs::read_to_string(&path).unwrap();
        assert_eq!(
            text,
            format!("{HEAD}stops\t30\t27\t0\t40\t21\nwrites\t30\t0\t3\t0\t21\n")
        );
        fs::write(&path, "stops\t30\n").unwrap();
        assert!(SoakRecord::open(&path).is_err());
    }
}
