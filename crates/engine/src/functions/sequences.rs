//! `nextval('s')` and `currval('s')`: numbers that a sequence of the session gives, each once.
//!
//! In: names of sequences. Out: the next number, of each row another one; the last number that was given.
//! Invariant: a number is given once, whichever statement asks; names are the same in any case. Numbers of rows that are thrown
//! away afterwards are gone.
//! Not here: CREATE SEQUENCE (sql/sequences.rs).

use std::collections::HashMap;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, Int64Array};
use datafusion::arrow::compute::cast;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, exec_datafusion_err, exec_err};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature, Volatility,
};
use parking_lot::Mutex;

use crate::error::nearest_names;
use crate::expr::function_methods::function_methods;

/// What a sequence gives.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SequenceNumbers {
    pub start: i64,
    pub increment: i64,
    pub least: i64,
    pub greatest: i64,
    pub after_last: AfterLast,
}

/// What comes after the last number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum AfterLast {
    Error,
    /// The numbers once more.
    Again,
}

#[derive(Debug)]
struct Sequence {
    numbers: SequenceNumbers,
    /// May lie beyond the last number.
    next: i128,
    last: Option<i64>,
}

/// What is done where there is a sequence of that name.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OldSequence {
    Error,
    Keep,
    Replace,
}

/// The sequences of a session, by name in lower case.
#[derive(Debug, Default)]
pub(crate) struct Sequences(Mutex<HashMap<String, Sequence>>);

impl Sequences {
    /// Makes a sequence.
    pub fn create(
        &self,
        name: &str,
        numbers: SequenceNumbers,
        existing: OldSequence,
    ) -> std::result::Result<(), String> {
        let mut sequences = self.0.lock();
        let key = name.to_lowercase();
        match existing {
            OldSequence::Error if sequences.contains_key(&key) => {
                return Err(format!(
                    "sequence '{name}' exists; write CREATE OR REPLACE SEQUENCE"
                ));
            }
            OldSequence::Keep if sequences.contains_key(&key) => return Ok(()),
            _ => {}
        }
        let sequence = Sequence {
            numbers,
            next: i128::from(numbers.start),
            last: None,
        };
        sequences.insert(key, sequence);
        Ok(())
    }

    /// Removes a sequence; whether there was one.
    pub fn remove(&self, name: &str) -> bool {
        self.0.lock().remove(&name.to_lowercase()).is_some()
    }

    /// Asks the sequences of these names, row by row.
    fn ask<'a>(
        &self,
        names: impl Iterator<Item = Option<&'a str>>,
        call: SequenceCall,
    ) -> Result<Int64Array> {
        let mut sequences = self.0.lock();
        let mut key = String::new();
        let numbers = names.map(|name| {
            let Some(name) = name else {
                return Ok(None);
            };
            if !key.eq_ignore_ascii_case(name) {
                key = name.to_lowercase();
            }
            let Some(sequence) = sequences.get_mut(&key) else {
                return Err(unknown(name, &sequences));
            };
            match call {
                SequenceCall::Next => sequence.advance(name).map(Some),
                SequenceCall::Current => match sequence.last {
                    Some(last) => Ok(Some(last)),
                    None => exec_err!(
                        "sequence '{name}' has given no number yet; nextval('{name}') does"
                    ),
                },
            }
        });
        numbers.collect()
    }
}

fn unknown(
    name: &str,
    sequences: &HashMap<String, Sequence>,
) -> datafusion::common::DataFusionError {
    let near = nearest_names(name, sequences.keys().map(String::as_str));
    match near.first() {
        Some(near) => exec_datafusion_err!("there is no sequence '{name}'; is it '{near}'?"),
        None => exec_datafusion_err!("there is no sequence '{name}'; CREATE SEQUENCE makes one"),
    }
}

impl Sequence {
    fn advance(&mut self, name: &str) -> Result<i64> {
        let SequenceNumbers {
            increment,
            least,
            greatest,
            after_last,
            ..
        } = self.numbers;
        let (last, again) = match increment > 0 {
            true => (greatest, least),
            false => (least, greatest),
        };
        let number = match i64::try_from(self.next) {
            Ok(next) if (least..=greatest).contains(&next) => next,
            _ if after_last == AfterLast::Again => again,
            _ => return exec_err!("sequence '{name}' has given its last number, {last}"),
        };
        self.next = i128::from(number) + i128::from(increment);
        self.last = Some(number);
        Ok(number)
    }
}

/// Which of the two functions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum SequenceCall {
    Next,
    Current,
}

/// The functions of a session, to be registered.
pub(super) fn functions(sequences: &Arc<Sequences>) -> [ScalarUDF; 2] {
    [SequenceCall::Next, SequenceCall::Current].map(|call| {
        ScalarUDF::from(SequenceFunction {
            signature: Signature::string(1, Volatility::Volatile),
            call,
            sequences: Arc::clone(sequences),
        })
    })
}

/// One of the functions.
#[derive(Debug)]
struct SequenceFunction {
    signature: Signature,
    call: SequenceCall,
    sequences: Arc<Sequences>,
}

impl PartialEq for SequenceFunction {
    fn eq(&self, other: &Self) -> bool {
        self.call == other.call && Arc::ptr_eq(&self.sequences, &other.sequences)
    }
}

impl Eq for SequenceFunction {}

impl Hash for SequenceFunction {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.call.hash(state);
    }
}

impl ScalarUDFImpl for SequenceFunction {
    function_methods!();

    fn name(&self) -> &str {
        match self.call {
            SequenceCall::Next => "nextval",
            SequenceCall::Current => "currval",
        }
    }

    fn return_type(&self, _: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let [names] = args.args.as_slice() else {
            return exec_err!("{} takes the name of a sequence", self.name());
        };
        // Also of a literal: each row has a number of its own.
        let names = cast(&names.to_array(args.number_rows)?, &DataType::Utf8)?;
        let numbers = self
            .sequences
            .ask(names.as_string::<i32>().iter(), self.call)?;
        Ok(ColumnarValue::Array(Arc::new(numbers) as ArrayRef))
    }
}
