//! `first_value`, `last_value` and `nth_value` over frames that leave rows out.
//!
//! In: a column, keys of the window's ORDER BY, each row's frame. Out: a value of the rows left; NULL where these are too few.
//! Invariant: with IGNORE NULLS rows whose value is NULL count for nothing.
//! Not here: which rows are left (left_rows.rs).

use std::ops::Range;
use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef};
use datafusion::arrow::datatypes::{DataType, FieldRef};
use datafusion::common::{Result, ScalarValue, plan_err};
use datafusion::logical_expr::function::{PartitionEvaluatorArgs, WindowUDFFieldArgs};
use datafusion::logical_expr::{PartitionEvaluator, Signature, WindowUDF, WindowUDFImpl};
use datafusion::physical_expr::expressions::Literal;

use super::Exclusion;
use super::left_rows::Frames;

use crate::wire::{Portable, WireReader, WireValue};

/// The function over frames that leave rows out; one that looks at no frame is the same.
pub(super) fn excluding(function: Arc<WindowUDF>, exclusion: Exclusion) -> Arc<WindowUDF> {
    match function.name() {
        "first_value" | "last_value" | "nth_value" => Arc::new(WindowUDF::from(ValueLeft {
            name: exclusion.name_of(function.name()),
            function,
            exclusion,
        })),
        _ => function,
    }
}

#[derive(Debug, PartialEq, Eq, Hash)]
pub(in crate::functions) struct ValueLeft {
    name: String,
    function: Arc<WindowUDF>,
    exclusion: Exclusion,
}

/// Which of the rows left has the value.
#[derive(Debug, Clone, Copy)]
enum ValuePlace {
    /// Counted from 0.
    FromStart(usize),
    Last,
}

impl ValueLeft {
    fn place(&self, args: &PartitionEvaluatorArgs) -> Result<ValuePlace> {
        match self.function.name() {
            "first_value" => return Ok(ValuePlace::FromStart(0)),
            "last_value" => return Ok(ValuePlace::Last),
            _ => {}
        }
        let count = args.input_exprs().get(1);
        let count = count.and_then(|expr| expr.downcast_ref::<Literal>());
        let count = count.map(|literal| literal.value().cast_to(&DataType::Int64));
        match count.transpose()? {
            Some(ScalarValue::Int64(Some(count))) if count >= 1 => Ok(ValuePlace::FromStart(
                usize::try_from(count - 1).unwrap_or(usize::MAX),
            )),
            Some(ScalarValue::Int64(Some(count))) => {
                plan_err!("nth_value counts rows from 1 on, not from {count}")
            }
            _ => plan_err!("nth_value takes a literal as its number of a row"),
        }
    }
}

impl WindowUDFImpl for ValueLeft {
    fn name(&self) -> &str {
        &self.name
    }

    fn signature(&self) -> &Signature {
        self.function.signature()
    }

    fn field(&self, args: WindowUDFFieldArgs) -> Result<FieldRef> {
        self.function.field(args)
    }

    fn partition_evaluator(
        &self,
        args: PartitionEvaluatorArgs,
    ) -> Result<Box<dyn PartitionEvaluator>> {
        Ok(Box::new(ValuePartition {
            place: self.place(&args)?,
            frames: Frames::new(self.exclusion),
            values: args.input_exprs().len(),
            ignores_nulls: args.ignore_nulls(),
        }))
    }
}

impl Portable for ValueLeft {
    const KIND: &'static str = "value_left";

    fn apart(&self) -> Vec<WireValue> {
        vec![
            self.name.as_str().into(),
            (&self.function).into(),
            self.exclusion.tag().into(),
        ]
    }

    fn whole(values: &mut WireReader) -> Result<Self> {
        Ok(ValueLeft {
            name: values.text()?,
            function: values.window()?,
            exclusion: Exclusion::of_tag(values)?,
        })
    }
}

/// The rows of one partition.
#[derive(Debug)]
struct ValuePartition {
    place: ValuePlace,
    frames: Frames,
    /// How many columns stand before the keys of ORDER BY.
    values: usize,
    ignores_nulls: bool,
}

impl PartitionEvaluator for ValuePartition {
    fn evaluate(&mut self, values: &[ArrayRef], frame: &Range<usize>) -> Result<ScalarValue> {
        let (values, keys) = values.split_at(self.values.min(values.len()));
        let left = self.frames.next(keys, frame)?;
        let Some(column) = values.first() else {
            return Ok(ScalarValue::Null);
        };
        let mut rows = left.into_iter().flatten();
        let row = match (self.place, self.ignores_nulls) {
            (ValuePlace::FromStart(count), false) => rows.nth(count),
            (ValuePlace::FromStart(count), true) => {
                rows.filter(|row| column.is_valid(*row)).nth(count)
            }
            (ValuePlace::Last, false) => rows.next_back(),
            (ValuePlace::Last, true) => rows.rfind(|row| column.is_valid(*row)),
        };
        match row {
            Some(row) => ScalarValue::try_from_array(column, row),
            None => ScalarValue::try_from(column.data_type()),
        }
    }

    fn uses_window_frame(&self) -> bool {
        true
    }
}
