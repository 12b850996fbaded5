//! DISTINCT and `mode`: a grouping by keys and arguments beside that of the keys, which gets each of its groups once.
//!
//! ```text
//! rows -> keys and arguments of the other aggregates --------------------------------> groups
//!      -> keys with the arguments of a DISTINCT or mode -> pairs, each once, counted -^
//! ```
//!
//! In: evaluated columns of a batch; pairs that are different. Out: a batch of pairs; a batch for the groups.
//! Invariant: a row with a NULL argument, unless NULL is a value, or one that FILTER leaves out, is in no pair. Its key is
//! among the groups all the same. Pairs are spread over workers by their whole hash, so that a group that has half of the
//! rows is no task of one worker. Tried and rejected: a set per group in DataFusion's states, which no table bounds and one
//! worker merges per group. Hits, shell, ms before and now: `medium_key_mixed_distinct` 380, 319, two distinct counts
//! 1,128, 729. Only 720 hours of rows that come almost in their order lose: `time_buckets_hours` 379, 430.
//! Not here: what a grouping does (`grouse_groupby`), when pairs are merged (worker.rs).

use std::sync::Arc;

use datafusion::arrow::array::{Array, ArrayRef, AsArray, BooleanArray};
use datafusion::arrow::buffer::BooleanBuffer;
use datafusion::arrow::compute::FilterBuilder;
use datafusion::arrow::datatypes::DataType;
use datafusion::common::Result;
use grouse_groupby::emit::Emitted;
use grouse_groupby::keys::KeyLayout;
use grouse_groupby::{Arguments, Batch, Sizes, Spec, states};

use super::compiled_aggregation::KeyColumn;
use crate::aggregate::native::AggregateInput;
use crate::expr::columns::without_nulls;

/// The distinct grouping of one aggregate, or of several with the same arguments and FILTER, and the same NULLs.
pub(super) struct DistinctGrouping {
    /// What the algorithm needs to know.
    pub spec: Arc<Spec>,
    values: Vec<KeyColumn>,
    filter: Option<usize>,
    with_null: bool,
}

/// Pairs that are different, as columns.
pub(super) struct DistinctPairs {
    /// The keys.
    pub keys: Vec<ArrayRef>,
    /// The values, if they are read.
    pub values: Vec<ArrayRef>,
    /// How many rows each pair has, if some aggregate asks for it.
    pub counts: Option<ArrayRef>,
}

/// Pairs as they are planned.
pub(super) struct Planned {
    /// Keys, then values.
    layout: KeyLayout,
    /// Where the values are among the expressions.
    values: Vec<usize>,
    /// Where FILTER is.
    filter: Option<usize>,
    /// False if all that is asked of values is how many there are.
    are_read: bool,
    /// True if somebody asks how often each occurs.
    are_counted: bool,
    /// True if NULL is a value as well.
    with_null: bool,
}

impl Planned {
    /// The place of these pairs among those that are planned; they are planned where they are not.
    pub fn among(
        planned: &mut Vec<Planned>,
        layout: KeyLayout,
        values: &[usize],
        filter: Option<usize>,
        reads: AggregateInput,
    ) -> usize {
        let with_null = reads.with_null();
        let same = |known: &Planned| {
            known.values == values && known.filter == filter && known.with_null == with_null
        };
        let at = planned.iter().position(same);
        let at = at.unwrap_or_else(|| {
            planned.push(Planned {
                layout,
                values: values.to_vec(),
                filter,
                are_read: false,
                are_counted: false,
                with_null,
            });
            planned.len() - 1
        });
        planned[at].are_read |= !reads.only_number();
        planned[at].are_counted |= reads == AggregateInput::Counted;
        at
    }

    /// The same of pairs that come as columns, whose values are at the next `places`.
    pub fn coming_at(self, places: &mut impl Iterator<Item = usize>) -> Planned {
        Planned {
            values: places.take(self.values.len()).collect(),
            filter: None,
            ..self
        }
    }

    /// What the algorithm needs of it.
    pub fn ready(self, sizes: Sizes) -> DistinctGrouping {
        let types = self.layout.types();
        let keys = types.len() - self.values.len();
        let values = self.values.iter().zip(&types[keys..]);
        let values = values.map(|(expression, data_type)| KeyColumn {
            expression: *expression,
            data_type: data_type.clone(),
        });
        let values = values.collect();
        let read = if self.are_read { types.len() } else { keys };
        let mut emitted: Vec<usize> = (0..read).collect();
        let mut aggregates = Vec::new();
        if self.are_counted {
            emitted.push(types.len());
            aggregates.extend(states::count("count(*)"));
        }
        let spec = Spec::new(self.layout, aggregates, sizes);
        DistinctGrouping {
            spec: Arc::new(spec.emitting(emitted)),
            values,
            filter: self.filter,
            with_null: self.with_null,
        }
    }
}

impl DistinctGrouping {
    /// The pairs of rows with these keys and expressions.
    pub fn of(
        &self,
        mut keys: Vec<ArrayRef>,
        expressions: &[ArrayRef],
        rows: usize,
    ) -> Result<Batch> {
        let takes_codes = self.spec.keys.takes_codes();
        for value in &self.values {
            keys.push(value.of(expressions, takes_codes)?);
        }
        let booleans = self
            .filter
            .map(|at| without_nulls(expressions[at].as_boolean()));
        let mut wanted: Option<BooleanBuffer> = booleans.map(|booleans| booleans.values().clone());
        let values = &keys[keys.len() - self.values.len()..];
        for value in values.iter().filter(|_| !self.with_null) {
            if let Some(nulls) = value.logical_nulls().filter(|nulls| nulls.null_count() > 0) {
                wanted = Some(match wanted {
                    Some(wanted) => &wanted & nulls.inner(),
                    None => nulls.into_inner(),
                });
            }
        }
        // Counting rows takes no columns.
        let arguments = vec![Arguments::default(); self.spec.aggregates.len()];
        let Some(wanted) = wanted else {
            return Ok(Batch::new(rows, keys, arguments));
        };
        let wanted = BooleanArray::new(wanted, None);
        let kept = FilterBuilder::new(&wanted).optimize().build();
        let keys = keys.iter().map(|column| kept.filter(column));
        let keys = keys.collect::<Result<_, _>>()?;
        Ok(Batch::new(kept.count(), keys, arguments))
    }

    /// The same whose pairs leave with all that is known of them.
    pub fn giving_values(self, sizes: Sizes) -> DistinctGrouping {
        let Spec {
            keys, aggregates, ..
        } = Arc::into_inner(self.spec).expect("nobody else has it yet");
        DistinctGrouping {
            spec: Arc::new(Spec::new(keys, aggregates, sizes)),
            ..self
        }
    }

    /// The types of values.
    pub fn value_types(&self) -> impl Iterator<Item = &DataType> {
        self.values.iter().map(|value| &value.data_type)
    }

    /// True if somebody asks how often each pair occurs.
    pub fn is_counted(&self) -> bool {
        !self.spec.aggregates.is_empty()
    }

    /// Columns of a pair beside its keys.
    pub fn width(&self) -> usize {
        self.values.len() + usize::from(self.is_counted())
    }

    /// Pairs that another stage has found different, their values among `columns`, and how often each occurs.
    pub fn of_pairs(
        &self,
        mut keys: Vec<ArrayRef>,
        columns: &[ArrayRef],
        counts: Option<ArrayRef>,
        rows: usize,
    ) -> Result<Batch> {
        let takes_codes = self.spec.keys.takes_codes();
        for value in &self.values {
            keys.push(value.of(columns, takes_codes)?);
        }
        let counts = counts.map(|counts| {
            Some(Arguments {
                columns: vec![counts],
                filter: None,
            })
        });
        Ok(Batch::of_partial(rows, keys, counts.into_iter().collect()))
    }

    /// Pairs that are different.
    pub fn parts(&self, pairs: Emitted) -> DistinctPairs {
        let mut keys = pairs.columns;
        let counts = self.is_counted().then(|| keys.pop()).flatten();
        let values = keys.split_off(self.spec.keys.types().len() - self.values.len());
        DistinctPairs {
            keys,
            values,
            counts,
        }
    }
}

impl DistinctPairs {
    /// The columns of an aggregate that reads pairs.
    pub fn arguments(&self, reads: AggregateInput) -> Arguments {
        let mut columns = Vec::new();
        if !reads.only_number() {
            columns.extend_from_slice(&self.values);
        }
        if reads == AggregateInput::Counted {
            columns.extend(self.counts.clone());
        }
        Arguments {
            columns,
            filter: None,
        }
    }
}
