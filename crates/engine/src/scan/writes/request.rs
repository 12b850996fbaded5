//! What a COPY asks for beyond what DataFusion's statement has.
//!
//! In: options under names of ours in DataFusion's plan of a COPY. Out: the plan without them, and [`Writes`].
//! Invariant: an option of ours never reaches a format, which would refuse it.
//! Not here: the text of the statement (sql/copy.rs).

use std::sync::{Arc, Weak};

use datafusion::common::Result as HostResult;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::dml::CopyTo;
use parking_lot::Mutex;

use super::stage::Stage;
use crate::error::{Error, Result, nearest_names};

/// What is done with a folder that exists: a key of COPY's options, and its values.
pub(crate) const EXISTING: &str = "grouse.existing";
/// Columns whose values name folders, between [`SEPARATOR`]s.
pub(crate) const PARTITION_BY: &str = "grouse.partition_by";
/// The ending of files in a folder.
pub(crate) const EXTENSION: &str = "grouse.extension";
/// The names of files in a folder, with `{i}` and `{uuid}`.
pub(crate) const PATTERN: &str = "grouse.pattern";
/// Between names of columns.
pub(crate) const SEPARATOR: char = '\u{1f}';

/// What happens to a folder that exists.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum Existing {
    /// Files are added.
    #[default]
    Added,
    /// It is an error, unless the folder is empty.
    Refused,
    /// It is replaced.
    Overwritten,
    /// Files of the same names are replaced, others stay.
    SameNamesReplaced,
}

impl Existing {
    /// As a value of [`EXISTING`].
    pub(crate) fn name(self) -> &'static str {
        match self {
            Existing::Added => "added",
            Existing::Refused => "refused",
            Existing::Overwritten => "overwritten",
            Existing::SameNamesReplaced => "same_names_replaced",
        }
    }

    fn named(name: &str) -> Result<Existing> {
        let all = [
            Existing::Added,
            Existing::Refused,
            Existing::Overwritten,
            Existing::SameNamesReplaced,
        ];
        let found = all.into_iter().find(|one| one.name() == name);
        found.ok_or_else(|| Error::Internal(format!("{EXISTING} = {name}")))
    }
}

/// The writing of one statement.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    pub existing: Existing,
    pub extension: Option<String>,
    pub pattern: Option<String>,
    stages: Mutex<Vec<Weak<Stage>>>,
}

impl Writes {
    /// Takes what is ours out of a plan.
    pub(crate) fn take(plan: LogicalPlan) -> Result<(LogicalPlan, Writes)> {
        let mut writes = Writes::default();
        let plan = plan.transform_down(|node| match node {
            LogicalPlan::Copy(copy) => {
                let copy = writes.take_copy(copy)?;
                Ok(Transformed::yes(LogicalPlan::Copy(copy)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok((plan.data, writes))
    }

    fn take_copy(&mut self, mut copy: CopyTo) -> HostResult<CopyTo> {
        let mut taken = |key: &str| copy.options.remove(key);
        if let Some(existing) = taken(EXISTING) {
            self.existing = Existing::named(&existing)?;
        }
        self.extension = taken(EXTENSION).or(self.extension.take());
        self.pattern = taken(PATTERN).or(self.pattern.take());
        if let Some(names) = taken(PARTITION_BY) {
            let columns = copy.input.schema().fields();
            let columns: Vec<&str> = columns.iter().map(|field| field.name().as_str()).collect();
            let found = names.split(SEPARATOR).map(|name| column(name, &columns));
            copy.partition_by = found.collect::<Result<Vec<String>>>()?;
        }
        Ok(copy)
    }

    /// Files of this statement that are under way, so that it can take them back.
    pub(super) fn watch(&self, stage: &Arc<Stage>) {
        self.stages.lock().push(Arc::downgrade(stage));
    }

    /// Takes back what is under way; what has been committed stays.
    pub(crate) fn discard(&self) {
        let stages = std::mem::take(&mut *self.stages.lock());
        for stage in stages.iter().filter_map(Weak::upgrade) {
            stage.discard();
        }
    }
}

/// The column of this name, else the one that differs in case only.
fn column(name: &str, columns: &[&str]) -> Result<String> {
    if columns.contains(&name) {
        return Ok(name.to_string());
    }
    let mut alike = columns.iter().filter(|one| one.eq_ignore_ascii_case(name));
    match (alike.next(), alike.next()) {
        (Some(one), None) => Ok((*one).to_string()),
        _ => Err(Error::UnknownColumn {
            name: name.to_string(),
            nearest: nearest_names(name, columns.iter().copied()),
            position: None,
        }),
    }
}
