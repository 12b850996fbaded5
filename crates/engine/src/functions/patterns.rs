//! DataFusion's functions of regular expressions: in one pass where the pattern allows it (anchored.rs), else once per
//! different text of a batch.
//!
//! In: a column of texts; a pattern and further arguments that are the same for all rows. Out: DataFusion's result per row.
//! Invariant: types, results and errors are DataFusion's: its function gets every text that a row has, and no other.
//! Not here: texts that come as codes (expr/per_value.rs); `~` and `regexp_like`, which DataFusion makes an operator of.

use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, UInt32Array};
use datafusion::arrow::compute::take;
use datafusion::arrow::datatypes::{DataType, Field};
use datafusion::common::Result;
use datafusion::functions::regex::{regexp_count, regexp_instr, regexp_match, regexp_replace};
use datafusion::logical_expr::{
    ColumnarValue, Documentation, ScalarFunctionArgs, ScalarUDF, ScalarUDFImpl, Signature,
};
use grouse_groupby::TableKind;
use grouse_groupby::keys::KeyLayout;
use grouse_groupby::keys::is_bytes;
use parking_lot::Mutex;

use super::anchored::Anchored;
use crate::error::to_host;

/// Texts that tell whether more are worth comparing, and how many of them may be different. A search takes 200 to 500 ns,
/// finding a text among those of its batch 40.
const SAMPLE: usize = 1024;
const SAMPLE_DIFFERENT_MAX: usize = SAMPLE / 8 * 7;

/// The functions, in the place of DataFusion's.
pub(super) fn functions() -> Vec<ScalarUDF> {
    let hosts = [
        regexp_replace(),
        regexp_match(),
        regexp_count(),
        regexp_instr(),
    ];
    hosts
        .map(|host| {
            ScalarUDF::from(OncePerText {
                host,
                last: Mutex::default(),
            })
        })
        .into()
}

struct OncePerText {
    host: Arc<ScalarUDF>,
    /// What was read of the last pattern: batches mostly have the one before.
    last: Mutex<Option<Read>>,
}

/// Pattern, replacement and flags, and what they come to.
struct Read {
    texts: [Option<String>; 3],
    anchored: Option<Arc<Anchored>>,
}

impl fmt::Debug for OncePerText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("OncePerText").field(&self.host).finish()
    }
}

impl PartialEq for OncePerText {
    fn eq(&self, other: &OncePerText) -> bool {
        self.host == other.host
    }
}

impl Eq for OncePerText {}

impl Hash for OncePerText {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.host.hash(state);
    }
}

impl OncePerText {
    fn anchored(
        &self,
        pattern: &str,
        replacement: &str,
        flags: Option<&str>,
    ) -> Option<Arc<Anchored>> {
        let texts = [Some(pattern), Some(replacement), flags];
        let is_same = |last: &&Read| last.texts.iter().map(Option::as_deref).eq(texts);
        if let Some(last) = self.last.lock().as_ref().filter(is_same) {
            return last.anchored.clone();
        }
        let anchored = Anchored::new(pattern, replacement, flags).map(Arc::new);
        *self.last.lock() = Some(Read {
            texts: texts.map(|text| text.map(str::to_string)),
            anchored: anchored.clone(),
        });
        anchored
    }

    /// `regexp_replace` where the pattern leaves few choices.
    fn replaced(&self, args: &[ColumnarValue]) -> Option<ArrayRef> {
        let (texts, pattern, replacement, flags) = match args {
            [ColumnarValue::Array(texts), pattern, replacement] => {
                (texts, pattern, replacement, None)
            }
            [ColumnarValue::Array(texts), pattern, replacement, flags] => {
                (texts, pattern, replacement, Some(text(flags)?))
            }
            _ => return None,
        };
        let anchored = self.anchored(text(pattern)?, text(replacement)?, flags);
        anchored?.replaced(texts)
    }
}

impl ScalarUDFImpl for OncePerText {
    fn name(&self) -> &str {
        self.host.name()
    }

    fn signature(&self) -> &Signature {
        self.host.signature()
    }

    fn return_type(&self, types: &[DataType]) -> Result<DataType> {
        self.host.return_type(types)
    }

    fn invoke_with_args(&self, mut args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        if self.host == regexp_replace()
            && let Some(replaced) = self.replaced(&args.args)
        {
            return Ok(ColumnarValue::Array(replaced));
        }
        let places = match args.args.as_slice() {
            [ColumnarValue::Array(texts), others @ ..] if others.iter().all(is_scalar) => {
                places(texts)?
            }
            _ => None,
        };
        let (Some(places), [ColumnarValue::Array(texts), ..]) = (places, args.args.as_mut_slice())
        else {
            return self.host.invoke_with_args(args);
        };
        *texts = take(texts, &places.firsts, None)?;
        args.number_rows = texts.len();
        Ok(match self.host.invoke_with_args(args)? {
            ColumnarValue::Array(results) => {
                ColumnarValue::Array(take(&results, &places.of_rows, None)?)
            }
            same => same,
        })
    }

    fn documentation(&self) -> Option<&Documentation> {
        self.host.documentation()
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

/// Where rows find the results of different values.
pub(crate) struct Numbered {
    /// The first row of each.
    pub firsts: UInt32Array,
    /// Of each row, which value it has.
    pub of_rows: UInt32Array,
}

/// None if there are few rows, or few texts occur in several.
fn places(texts: &ArrayRef) -> Result<Option<Numbered>> {
    if texts.len() < SAMPLE || !is_bytes(texts.data_type()) {
        return Ok(None);
    }
    let sample = numbered(&texts.slice(0, SAMPLE))?;
    if sample.firsts.len() > SAMPLE_DIFFERENT_MAX {
        return Ok(None);
    }
    let mut all = numbered(texts)?;
    if let [only] = all.firsts.values()[..] {
        // DataFusion takes arguments of one row for such that are the same for all, which fail in other words.
        all.firsts = vec![only; 2].into();
    }
    Ok(Some(all))
}

/// The different values of a column; NULL is one.
pub(crate) fn numbered(values: &ArrayRef) -> Result<Numbered> {
    let field = Field::new("value", values.data_type().clone(), true);
    let layout = KeyLayout::new(&[Arc::new(field)], TableKind::Auto).map_err(to_host)?;
    let mut hashes = Vec::with_capacity(values.len());
    let keys = layout.encode(&[Arc::clone(values)], values.len(), &mut hashes);
    let keys = keys.map_err(to_host)?;
    let mut table = layout.table();
    let mut groups = Vec::with_capacity(values.len());
    let assigned = table.assign(keys.all(), &hashes, &mut groups);
    assigned.map_err(to_host)?;
    let mut firsts: Vec<u32> = Vec::with_capacity(table.len());
    for (row, group) in groups.iter().enumerate() {
        if group.0 as usize == firsts.len() {
            firsts.push(row as u32);
        }
    }
    let of_rows = groups.into_iter().map(|group| group.0);
    Ok(Numbered {
        firsts: firsts.into(),
        of_rows: of_rows.collect::<Vec<_>>().into(),
    })
}
