//! Errors: what was wrong, where, and what to do.
//!
//! In: failures of parsing, planning, reading and running, ours and DataFusion's.
//! Out: one enum that the shell's exit codes and Python's exceptions mirror.
//! Invariant: `Error` survives a trip through DataFusion: `DataFusionError::from(error)` and back is the same error.
//! Not here: how DataFusion's errors are told apart (error/from_datafusion.rs).

pub(crate) mod from_datafusion;
mod group_by;
mod phrases;
mod words;
mod signatures;
pub(crate) mod types;

pub(crate) use group_by::to_datafusion;
pub(crate) use words::in_sql_words;

use std::fmt;

use datafusion::common::DataFusionError;

/// The result of everything here.
pub type Result<T, E = Error> = std::result::Result<T, E>;

/// A place in the SQL text, both counted from 1; columns count characters.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct Position {
    /// Line.
    pub line: u64,
    /// Column in characters.
    pub column: u64,
}

impl fmt::Display for Position {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}, column {}", self.line, self.column)
    }
}

/// Everything that a query can fail with.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// The text is not SQL.
    #[error("syntax error at line {line}, column {column}: {message}")]
    Syntax {
        /// What was expected and what was found.
        message: String,
        /// Line, from 1.
        line: u64,
        /// Column in characters, from 1.
        column: u64,
    },
    /// No table of the query has such a column.
    #[error("column '{name}' does not exist{}{}", at(.position), did_you_mean(.nearest))]
    UnknownColumn {
        /// As written.
        name: String,
        /// The nearest names that do exist, best first.
        nearest: Vec<String>,
        /// Where it is written.
        position: Option<Position>,
    },
    /// Several tables of the query have such a column.
    #[error("column '{name}' is ambiguous{}; {}", at(.position), write_one_of(.candidates))]
    AmbiguousColumn {
        /// As written.
        name: String,
        /// The qualified names that it may mean.
        candidates: Vec<String>,
        /// Where it is written.
        position: Option<Position>,
    },
    /// There is no such table.
    #[error("table '{name}' does not exist{}{}", at(.position), did_you_mean(.nearest))]
    UnknownTable {
        /// As written.
        name: String,
        /// The nearest names that do exist, best first.
        nearest: Vec<String>,
        /// Where it is written.
        position: Option<Position>,
    },
    /// There is no such scalar, aggregate, window or table function.
    #[error("function '{name}' does not exist{}{}", at(.position), did_you_mean(.nearest))]
    UnknownFunction {
        /// As written.
        name: String,
        /// The nearest names that do exist, best first.
        nearest: Vec<String>,
        /// Where it is written.
        position: Option<Position>,
    },
    /// Types do not fit, or a value cannot be converted.
    #[error("type error{}: {message}", at(.position))]
    Type {
        /// Which types, and for what.
        message: String,
        /// Where, if known.
        position: Option<Position>,
    },
    /// The query makes no sense for another reason.
    #[error("invalid query{}: {message}", at(.position))]
    Planning {
        /// The reason.
        message: String,
        /// Where, if known.
        position: Option<Position>,
    },
    /// SQL that is understood but cannot be run here.
    #[error("not supported: {message}")]
    Unsupported {
        /// What.
        message: String,
    },
    /// A clause of SQL that is understood but cannot be run here.
    #[error("not supported{}: {message}", at(.position))]
    UnsupportedClause {
        /// Which clause, and what to write instead.
        message: String,
        /// Where, if known.
        position: Option<Position>,
    },
    /// A file, folder or server cannot be read or written.
    #[error("cannot access '{path}': {message}")]
    Io {
        /// As written in the query, or the full path.
        path: String,
        /// The system's or the server's reason.
        message: String,
    },
    /// A file's content is not what its format demands.
    #[error("bad file '{path}'{}: {message}", .line.map(|line| format!(", line {line}")).unwrap_or_default())]
    Format {
        /// The file.
        path: String,
        /// Line in text files, from 1.
        line: Option<u64>,
        /// What is wrong.
        message: String,
    },
    /// The memory limit is reached.
    #[error(transparent)]
    OutOfMemory(#[from] OutOfMemory),
    /// A result does not fit its type.
    #[error("overflow in {aggregate}: {message}")]
    Overflow {
        /// The aggregate as written, or `arithmetic`.
        aggregate: String,
        /// Which type, and the way out.
        message: String,
    },
    /// An integer or decimal was divided by zero.
    #[error("division by zero; write NULLIF(divisor, 0) to get NULL instead")]
    DivideByZero,
    /// The query was stopped from outside.
    #[error("the query was cancelled")]
    Cancelled,
    /// The statement took longer than `statement_timeout` allows.
    #[error("the statement took longer than statement_timeout, which is {limit}")]
    Timeout {
        /// The option's value.
        limit: String,
    },
    /// An option or an argument has a value that is not possible.
    #[error("invalid {name}: {message}")]
    Invalid {
        /// Name of the option or argument.
        name: String,
        /// The reason.
        message: String,
    },
    /// Any other failure while running.
    #[error("{0}")]
    Execution(String),
    /// One of those without a place, which has one after all.
    #[error("{}", with_place(&.error.to_string(), *.position))]
    Placed {
        /// What is wrong.
        error: Box<Error>,
        /// Where.
        position: Position,
    },
    /// A defect of this program.
    #[error("internal error (please report it): {0}")]
    Internal(String),
}

/// A refused request for memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OutOfMemory {
    /// The operator that asked.
    pub operator: String,
    /// Bytes that it asked for.
    pub asked_bytes: u64,
    /// Bytes that it held already.
    pub held_bytes: u64,
    /// Bytes in use in the whole session.
    pub used_bytes: u64,
    /// The session's limit.
    pub limit_bytes: u64,
}

/// What stands around the figures of an [`OutOfMemory`]; `parse` reads the same pieces.
const OUT_OF_MEMORY: [&str; 6] = [
    "out of memory: ",
    " asked for ",
    " bytes more than its ",
    " bytes, with ",
    " of ",
    " bytes in use; raise memory_limit (SET memory_limit = '…', --memory-limit) or group by fewer keys",
];

impl fmt::Display for OutOfMemory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [start, asked, held, used, limit, end] = OUT_OF_MEMORY;
        write!(f, "{start}{}{asked}{}", self.operator, self.asked_bytes)?;
        write!(
            f,
            "{held}{}{used}{}{limit}{}{end}",
            self.held_bytes, self.used_bytes, self.limit_bytes
        )
    }
}

impl std::error::Error for OutOfMemory {}

impl OutOfMemory {
    /// Reads back what `Display` wrote, wherever it stands in `text`: DataFusion carries such errors as text only.
    pub fn parse(text: &str) -> Option<OutOfMemory> {
        let [start, asked, held, used, limit, end] = OUT_OF_MEMORY;
        let (_, rest) = text.split_once(start)?;
        let (operator, rest) = rest.split_once(asked)?;
        let (asked_bytes, rest) = rest.split_once(held)?;
        let (held_bytes, rest) = rest.split_once(used)?;
        let (used_bytes, rest) = rest.split_once(limit)?;
        let (limit_bytes, _) = rest.split_once(end)?;
        Some(OutOfMemory {
            operator: operator.to_string(),
            asked_bytes: asked_bytes.parse().ok()?,
            held_bytes: held_bytes.parse().ok()?,
            used_bytes: used_bytes.parse().ok()?,
            limit_bytes: limit_bytes.parse().ok()?,
        })
    }
}

/// `Error`s of a message alone, by a function of each kind.
macro_rules! of_messages {
    ($($(#[$doc:meta])* $name:ident: $kind:ident { $($position:ident)? };)*) => {
        impl Error {
            $($(#[$doc])*
            pub(crate) fn $name(message: impl Into<String>) -> Error {
                Error::$kind { message: message.into() $(, $position: None)? }
            })*
        }
    };
}

of_messages! {
    /// What cannot be run here.
    unsupported: Unsupported {};
    /// A clause that cannot be run here, wherever it stands.
    unsupported_clause: UnsupportedClause { position };
    /// A query that makes no sense, wherever it is wrong.
    planning: Planning { position };
    /// Types that do not fit, wherever they stand.
    wrong_type: Type { position };
}

impl Error {
    /// An option, an argument or a name has a value that it cannot have.
    pub(crate) fn invalid(name: impl Into<String>, message: impl Into<String>) -> Error {
        Error::Invalid {
            name: name.into(),
            message: message.into(),
        }
    }

    /// A file is not what its format demands, in no line that is known.
    pub(crate) fn bad_file(path: impl Into<String>, message: impl Into<String>) -> Error {
        Error::Format {
            path: path.into(),
            line: None,
            message: message.into(),
        }
    }

    /// The same error of a text that the user does not see.
    pub(crate) fn without_position(self) -> Error {
        let mut error = match self {
            Error::Placed { error, .. } => *error,
            other => other,
        };
        if let Some(position) = error.own_position() {
            *position = None;
        }
        error
    }

    /// Where in the SQL text the error is, if known.
    pub fn position(&self) -> Option<Position> {
        match self {
            Error::Syntax { line, column, .. } => Some(Position {
                line: *line,
                column: *column,
            }),
            Error::UnknownColumn { position, .. }
            | Error::AmbiguousColumn { position, .. }
            | Error::UnknownTable { position, .. }
            | Error::UnknownFunction { position, .. }
            | Error::Type { position, .. }
            | Error::Planning { position, .. }
            | Error::UnsupportedClause { position, .. } => *position,
            Error::Placed { position, .. } => Some(*position),
            _ => None,
        }
    }

    /// The place of an error that may have one or not.
    fn own_position(&mut self) -> Option<&mut Option<Position>> {
        match self {
            Error::UnknownColumn { position, .. }
            | Error::AmbiguousColumn { position, .. }
            | Error::UnknownTable { position, .. }
            | Error::UnknownFunction { position, .. }
            | Error::Type { position, .. }
            | Error::Planning { position, .. }
            | Error::UnsupportedClause { position, .. } => Some(position),
            _ => None,
        }
    }

    /// What is wrong, wherever it is: the error within [`Error::Placed`], any other itself.
    pub fn kind(&self) -> &Error {
        match self {
            Error::Placed { error, .. } => error,
            error => error,
        }
    }

    /// The same error with a place, if one is known.
    pub(crate) fn at(self, position: Option<Position>) -> Error {
        match position {
            None => self,
            Some(position) => Error::Placed {
                error: Box::new(self),
                position,
            },
        }
    }

    /// The same error without a place that lies behind these lines.
    pub(crate) fn within_lines(mut self, lines: u64) -> Error {
        match self {
            Error::Syntax { message, line, .. } if line > lines => Error::Syntax {
                message,
                line: 1,
                column: 1,
            },
            Error::Placed { error, position } if position.line > lines => *error,
            _ => {
                if let Some(own) = self.own_position() {
                    *own = own.filter(|position| position.line <= lines);
                }
                self
            }
        }
    }

    /// The same error in a script in which its statement starts at `start`.
    pub fn moved_to(mut self, start: Position) -> Error {
        let moved = |line: &mut u64, column: &mut u64| {
            *column += if *line == 1 { start.column - 1 } else { 0 };
            *line += start.line - 1;
        };
        match &mut self {
            Error::Syntax { line, column, .. } => moved(line, column),
            Error::Placed { position: at, .. } => moved(&mut at.line, &mut at.column),
            other => {
                if let Some(Some(at)) = other.own_position() {
                    moved(&mut at.line, &mut at.column);
                }
            }
        }
        self
    }
}

impl From<Error> for DataFusionError {
    fn from(error: Error) -> DataFusionError {
        DataFusionError::External(Box::new(error))
    }
}

fn at(position: &Option<Position>) -> String {
    position
        .map(|position| format!(" ({position})"))
        .unwrap_or_default()
}

/// A message with a place behind its first words, which say what is wrong and not why.
fn with_place(message: &str, position: Position) -> String {
    let mut is_quoted = false;
    let ends = message.char_indices().find(|(at, letter)| {
        is_quoted ^= *letter == '\'';
        let rest = &message[*at..];
        !is_quoted && (rest.starts_with(": ") || rest.starts_with("; "))
    });
    let (what, why) = message.split_at(ends.map_or(message.len(), |(at, _)| at));
    format!("{what} ({position}){why}")
}

fn write_one_of(candidates: &[String]) -> String {
    match candidates {
        [] => "write its table before it".to_string(),
        names => format!("write one of {}", names.join(", ")),
    }
}

fn did_you_mean(nearest: &[String]) -> String {
    match nearest {
        [] => String::new(),
        names => format!("; did you mean {}?", names.join(", ")),
    }
}

/// At most this many names are proposed.
const NEAREST_MAX: usize = 3;

/// The candidates that a misspelt `name` is most likely meant to be, best first.
pub fn nearest_names<'a>(name: &str, candidates: impl IntoIterator<Item = &'a str>) -> Vec<String> {
    let wanted = name.to_lowercase();
    let bare = wanted.rsplit('.').next().unwrap_or(&wanted);
    let edits_max = (bare.chars().count() / 3).max(1);
    let mut ranked: Vec<(usize, &str)> = candidates
        .into_iter()
        .filter_map(|candidate| {
            let lower = candidate.to_lowercase();
            let lower_bare = lower.rsplit('.').next().unwrap_or(&lower);
            let edits = match is_abbreviation(bare, lower_bare) {
                true => 0,
                false => strsim::damerau_levenshtein(bare, lower_bare),
            };
            let part = bare.len() >= 3 && lower_bare.contains(bare);
            // A name all of whose letters differ is another name.
            let letters = bare.chars().count().max(lower_bare.chars().count());
            let near = !bare.is_empty() && edits <= edits_max && edits < letters;
            (near || part).then_some((edits, candidate))
        })
        .collect();
    ranked.sort();
    ranked.dedup();
    ranked
        .into_iter()
        .take(NEAREST_MAX)
        .map(|(_, candidate)| candidate.to_string())
        .collect()
}

/// True if a name without its vowels is what is written: `cnt` of `count`.
fn is_abbreviation(written: &str, name: &str) -> bool {
    let is_vowel = |c: char| "aeiou".contains(c);
    let has_vowels = written.contains(is_vowel);
    written.len() >= 3 && !has_vowels && written != name && name.replace(is_vowel, "") == written
}

/// The only one of `names` that differs from `name` in nothing but case; `None` if `name` itself is among them.
pub(crate) fn only_other_case<'a>(
    name: &str,
    names: impl Iterator<Item = &'a str>,
) -> Option<&'a str> {
    let folded = name.to_lowercase();
    let mut only: Option<&'a str> = None;
    for candidate in names.filter(|candidate| candidate.to_lowercase() == folded) {
        if candidate == name || only.is_some_and(|other| other != candidate) {
            return None;
        }
        only = Some(candidate);
    }
    only
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nearest() {
        let columns = ["UserID", "WatchID", "URL", "RegionID", "EventDate"];
        assert_eq!(nearest_names("UserId", columns), ["UserID"]);
        assert_eq!(nearest_names("usrid", columns), ["UserID"]);
        assert_eq!(nearest_names("Region", columns), ["RegionID"]);
        assert_eq!(nearest_names("xyzzy", columns), Vec::<String>::new());
        assert_eq!(nearest_names("t.user_id", columns), ["UserID"]);
        assert_eq!(nearest_names("cnt", ["cot", "count"]), ["count", "cot"]);
    }

    #[test]
    fn out_of_memory_round_trips_through_text() {
        let out = OutOfMemory {
            operator: "GroupByExec[3]".to_string(),
            asked_bytes: 1,
            held_bytes: 2,
            used_bytes: 3,
            limit_bytes: 4,
        };
        assert_eq!(
            OutOfMemory::parse(&format!("Resources exhausted: {out}\nmore")),
            Some(out)
        );
        assert_eq!(OutOfMemory::parse("Resources exhausted"), None);
    }

    #[test]
    fn positions_move_with_their_statement() {
        let error = |line, column| Error::Syntax {
            message: String::new(),
            line,
            column,
        };
        let start = Position {
            line: 3,
            column: 10,
        };
        assert_eq!(error(1, 2).moved_to(start), error(3, 11));
        assert_eq!(error(2, 2).moved_to(start), error(4, 2));
    }

    #[test]
    fn places_stand_behind_what_is_wrong() {
        let place = Position { line: 1, column: 9 };
        let placed = |error: Error| error.at(Some(place)).to_string();
        assert_eq!(
            placed(Error::DivideByZero),
            "division by zero (line 1, column 9); write NULLIF(divisor, 0) to get NULL instead"
        );
        let message = "'a: b' is no UUID".to_string();
        assert_eq!(
            placed(Error::Execution(message)),
            "'a: b' is no UUID (line 1, column 9)"
        );
    }

    #[test]
    fn errors_survive_datafusion() {
        let error = Error::Io {
            path: "x".to_string(),
            message: "y".to_string(),
        };
        let there = DataFusionError::from(error.clone()).context("while planning");
        assert_eq!(Error::from(there), error);
    }
}
