//! `EXCLUDE CURRENT ROW`, `GROUP` and `TIES`: what a frame of a window leaves out, which DataFusion does not know.
//!
//! In: a call over a frame that leaves rows out. Out: while it is planned, an aggregate that says so and is one to all rules. In
//! the end it is a window function that finds the frame's rows without those, and aggregates them.
//! Invariant: names tell such a call from one over the whole frame.
//! Not here: where the text says so (sql/fixes/exclusions.rs); which calls it is said of (optimizer/fixes/orders/exclusions.rs).

mod left_rows;
mod chunks;
mod aggregates;
mod values;

use std::sync::Arc;

use datafusion::arrow::datatypes::DataType;
use datafusion::common::{Result, internal_err, plan_err};
use datafusion::logical_expr::expr::{ScalarFunction, WindowFunction, WindowFunctionParams};
use datafusion::logical_expr::function::AccumulatorArgs;
use datafusion::logical_expr::{
    Accumulator, AggregateUDF, AggregateUDFImpl, ColumnarValue, Expr, ScalarFunctionArgs,
    ScalarUDF, ScalarUDFImpl, Signature, Volatility, WindowFunctionDefinition, WindowUDF,
};

use crate::expr::function_methods::function_methods;
use crate::functions::of_distinct_rows;
use crate::functions::wrapped::as_wrapped;
use crate::wire::{FunctionKind, WireReader, window};

/// The name of the mark that a parsed statement has among the keys of PARTITION BY.
pub(crate) const EXCLUDE: &str = "exclude from frame";

/// Which rows a frame leaves out.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(crate) enum Exclusion {
    CurrentRow,
    /// The current row and its peers.
    Group,
    /// The peers of the current row.
    Ties,
    /// GROUP of a window without ORDER BY, all of whose rows are peers, in whatever order they come.
    All,
    /// TIES of such a window.
    Others,
}

/// All of them under their names in messages.
const EXCLUSIONS: [(&str, Exclusion); 5] = [
    ("current_row", Exclusion::CurrentRow),
    ("group", Exclusion::Group),
    ("ties", Exclusion::Ties),
    ("all", Exclusion::All),
    ("others", Exclusion::Others),
];

impl Exclusion {
    /// As SQL has it.
    pub(crate) fn words(self) -> &'static str {
        match self {
            Exclusion::CurrentRow => "CURRENT ROW",
            Exclusion::Group | Exclusion::All => "GROUP",
            Exclusion::Ties | Exclusion::Others => "TIES",
        }
    }

    fn of_words(words: &str) -> Option<Exclusion> {
        let mut all = [Exclusion::CurrentRow, Exclusion::Group, Exclusion::Ties].into_iter();
        all.find(|one| one.words() == words)
    }

    /// The same in a window without ORDER BY: a plan may give it the order of a subquery later.
    pub(crate) fn without_order(self) -> Exclusion {
        match self {
            Exclusion::Group => Exclusion::All,
            Exclusion::Ties => Exclusion::Others,
            other => other,
        }
    }

    /// As messages have it: by the window's order, too.
    fn tag(self) -> &'static str {
        let found = EXCLUSIONS.iter().find(|(_, one)| *one == self);
        found.map_or("", |(tag, _)| tag)
    }

    fn of_tag(values: &mut WireReader) -> Result<Exclusion> {
        values.one_of(&EXCLUSIONS)
    }

    /// The name of a function over such a frame.
    fn name_of(self, function: &str) -> String {
        format!("{function} EXCLUDE {}", self.words())
    }
}

/// The window functions, which travel.
pub(in crate::functions) fn kinds() -> Vec<FunctionKind<WindowUDF>> {
    vec![
        window::<aggregates::OverLeftRows>(),
        window::<values::ValueLeft>(),
    ]
}

/// The mark.
pub(in crate::functions) fn exclude() -> ScalarUDF {
    ScalarUDF::new_from_impl(Exclude {
        signature: Signature::any(1, Volatility::Immutable),
    })
}

#[derive(Debug, PartialEq, Eq, Hash)]
struct Exclude {
    signature: Signature,
}

impl ScalarUDFImpl for Exclude {
    function_methods!(EXCLUDE);

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(DataType::Int64)
    }

    fn invoke_with_args(&self, _args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        plan_err!("EXCLUDE stands behind the frame of a window")
    }
}

/// Takes the mark out of the keys of a window's partitions.
pub(crate) fn take_exclusion(partition_by: &mut Vec<Expr>) -> Option<Exclusion> {
    let marked = |key: &Expr| match key {
        Expr::ScalarFunction(ScalarFunction { func, args }) if func.inner().is::<Exclude>() => {
            match args.as_slice() {
                [Expr::Literal(words, _)] => words.try_as_str().flatten().map(str::to_owned),
                _ => None,
            }
        }
        _ => None,
    };
    let found = partition_by.iter().find_map(marked);
    partition_by.retain(|key| marked(key).is_none());
    Exclusion::of_words(&found?)
}

/// The function over frames that leave rows out; one that looks at no frame is the same.
pub(crate) fn excluding(
    function: WindowFunctionDefinition,
    exclusion: Exclusion,
) -> WindowFunctionDefinition {
    match function {
        WindowFunctionDefinition::AggregateUDF(aggregate) => {
            WindowFunctionDefinition::AggregateUDF(with_exclusion(aggregate, exclusion))
        }
        WindowFunctionDefinition::WindowUDF(function) => {
            WindowFunctionDefinition::WindowUDF(values::excluding(function, exclusion))
        }
    }
}

/// The aggregate over frames that leave rows out.
pub(in crate::functions) fn with_exclusion(
    aggregate: Arc<AggregateUDF>,
    exclusion: Exclusion,
) -> Arc<AggregateUDF> {
    Arc::new(AggregateUDF::from(Excluding {
        aggregate,
        exclusion,
    }))
}

/// The aggregate of a window, and what its frames leave out.
pub(in crate::functions) fn without_exclusion(
    function: &Arc<AggregateUDF>,
) -> (Arc<AggregateUDF>, Option<Exclusion>) {
    match function.inner().downcast_ref::<Excluding>() {
        Some(excluding) => (Arc::clone(&excluding.aggregate), Some(excluding.exclusion)),
        None => (Arc::clone(function), None),
    }
}

/// The window function that aggregates the rows which frames do not leave out; `None` of a call over whole frames. Its FILTER is its
/// last argument, as DataFusion has none for window functions.
pub(crate) fn over_left_rows(window: &WindowFunction) -> Option<WindowFunction> {
    let WindowFunctionDefinition::AggregateUDF(function) = &window.fun else {
        return None;
    };
    let (aggregate, exclusion) = without_exclusion(function);
    let mut params = window.params.clone();
    let aggregate = match params.distinct {
        true => of_distinct_rows(&aggregate).unwrap_or(aggregate),
        false => aggregate,
    };
    let filter = params.filter.take();
    let exclusion = exclusion?;
    let function = aggregates::OverLeftRows {
        name: exclusion.name_of(aggregate.name()),
        aggregate,
        exclusion,
        is_distinct: std::mem::take(&mut params.distinct),
        is_filtered: filter.is_some(),
        signature: Signature::user_defined(Volatility::Immutable),
    };
    params.args.extend(filter.map(|filter| *filter));
    Some(WindowFunction {
        fun: WindowFunctionDefinition::WindowUDF(Arc::new(function.into())),
        params,
    })
}

/// An aggregate over frames that leave rows out, as long as rules look at it.
#[derive(Debug, PartialEq, Eq, Hash)]
struct Excluding {
    aggregate: Arc<AggregateUDF>,
    exclusion: Exclusion,
}

impl AggregateUDFImpl for Excluding {
    as_wrapped!(
        aggregate: name, signature, coerce_types, return_type, return_field, is_nullable,
        state_fields, supports_null_handling_clause
    );

    fn accumulator(&self, _args: AccumulatorArgs) -> Result<Box<dyn Accumulator>> {
        internal_err!(
            "EXCLUDE {} of {} was not planned",
            self.exclusion.words(),
            self.name()
        )
    }

    fn window_function_schema_name(&self, params: &WindowFunctionParams) -> Result<String> {
        let name = self.aggregate.window_function_schema_name(params)?;
        Ok(self.exclusion.name_of(&name))
    }

    fn window_function_display_name(&self, params: &WindowFunctionParams) -> Result<String> {
        let name = self.aggregate.window_function_display_name(params)?;
        Ok(self.exclusion.name_of(&name))
    }
}
