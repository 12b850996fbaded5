//! DataFusion's functions of regular expressions: in one pass where the pattern allows it, else once per distinct string of a
//! batch.
//!
//! ```text
//! regexp_replace(column, '^…', replacement) -> chain of steps (patterns/anchored.rs, crate `grouse-kernels`, `chain`)
//!                                                 -> views into the column (patterns/parts.rs)
//! all others                                -> distinct strings (expr/distinct_values) -> DataFusion's function
//! ```
//!
//! The pass stays since grouping hits by the domain of `Referer` takes 2.1 times as long without it (2 threads).
//!
//! In: a column of strings; a pattern and further arguments that are the same for all rows. Out: DataFusion's result per row.
//! Invariant: types, results and errors are DataFusion's: its function gets every string that a row has, and no other.
//! Not here: strings that come as codes (expr/distinct_values); `~` and `regexp_like`, which DataFusion makes an operator of.

mod anchored;
mod parts;

use std::collections::VecDeque;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::compute::take;
use datafusion::common::Result;
use datafusion::functions::regex::{regexp_count, regexp_instr, regexp_match, regexp_replace};
use datafusion::logical_expr::{ColumnarValue, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl};

use crate::expr::distinct_values::{Hashed, Spread, repeated};
use crate::functions::wrapped::as_wrapped;
use crate::runtime::per_thread::PerThread;
use anchored::Anchored;

/// The functions, in the place of DataFusion's.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let of_datafusion = [
        regexp_replace(),
        regexp_match(),
        regexp_count(),
        regexp_instr(),
    ];
    of_datafusion
        .map(|datafusion| {
            ScalarUDF::from(OncePerText {
                datafusion,
                known: PerThread::default(),
            })
        })
        .into()
}

struct OncePerText {
    datafusion: Arc<ScalarUDF>,
    /// What each thread read of its last patterns: batches mostly have those of the batch before.
    known: PerThread<VecDeque<ParsedPattern>>,
}

/// Patterns that a thread knows: those of a query with several, or of several queries.
const PATTERNS_MAX: usize = 4;

/// Pattern, replacement and flags, and what they come to.
struct ParsedPattern {
    strings: [Option<String>; 3],
    anchored: Option<Arc<Anchored>>,
}

impl fmt::Debug for OncePerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OncePerText")
            .field(&self.datafusion)
            .finish()
    }
}

impl PartialEq for OncePerText {
    fn eq(&self, other: &OncePerText) -> bool {
        self.datafusion == other.datafusion
    }
}

impl Eq for OncePerText {}

impl Hash for OncePerText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.datafusion.hash(state);
    }
}

impl OncePerText {
    fn anchored(
        &self,
        pattern: &str,
        replacement: &str,
        flags: Option<&str>,
    ) -> Option<Arc<Anchored>> {
        let strings = [Some(pattern), Some(replacement), flags];
        let is_same = |known: &ParsedPattern| {
            let known = known.strings.iter().map(Option::as_deref);
            known.eq(strings)
        };
        self.known.with(|known| {
            if let Some(at) = known.iter().position(is_same) {
                return known[at].anchored.clone();
            }
            let anchored = Anchored::new(pattern, replacement, flags).map(Arc::new);
            known.truncate(PATTERNS_MAX - 1);
            known.push_front(ParsedPattern {
                strings: strings.map(|text| text.map(str::to_string)),
                anchored: anchored.clone(),
            });
            anchored
        })
    }

    /// `regexp_replace` where the pattern leaves few choices.
    fn replaced(&self, args: &[ColumnarValue]) -> Option<ArrayRef> {
        let (strings, pattern, replacement, flags) = match args {
            [ColumnarValue::Array(strings), pattern, replacement] => {
                (strings, pattern, replacement, None)
            }
            [ColumnarValue::Array(strings), pattern, replacement, flags] => {
                (strings, pattern, replacement, Some(text(flags)?))
            }
            _ => return None,
        };
        let anchored = self.anchored(text(pattern)?, text(replacement)?, flags);
        anchored?.replaced(strings)
    }
}

impl ScalarUDFImpl for OncePerText {
    as_wrapped!(datafusion: name, signature, return_type, documentation);

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.datafusion == regexp_replace()
            && let Some(replaced) = self.replaced(&args.args)
        {
            return Ok(ColumnarValue::Array(replaced));
        }
        let distinct = match args.args.as_mut_slice() {
            [ColumnarValue::Array(strings), others @ ..] if others.iter().all(is_scalar) => {
                let distinct = repeated(strings)?;
                distinct.map(|distinct| (strings, distinct))
            }
            _ => None,
        };
        let Some((strings, Hashed { mut firsts, codes })) = distinct else {
            return self.datafusion.invoke_with_args(args);
        };
        if let [only] = firsts.values()[..] {
            // DataFusion takes arguments of one row for such that are the same for all, which fail in other words.
            firsts = vec![only; 2].into();
        }
        *strings = take(strings, &firsts, None)?;
        args.number_rows = strings.len();
        Ok(match self.datafusion.invoke_with_args(args)? {
            ColumnarValue::Array(results) => {
                ColumnarValue::Array(Spread::new(results, codes).rows()?)
            }
            same => same,
        })
    }
}

fn text(value: &ColumnarValue) -> Option<&str> {
    match value {
        ColumnarValue::Scalar(scalar) => scalar.try_as_str().flatten(),
        ColumnarValue::Array(_) => None,
    }
}

fn is_scalar(value: &ColumnarValue) -> bool {
    matches!(value, ColumnarValue::Scalar(_))
}
