//! What a COPY asks for beyond what DataFusion's statement has.
//!
//! In: an option of ours in DataFusion's plan of a COPY. Out: the plan without them, and [`Writes`].
//! Invariant: an option of ours never reaches a format, which would refuse it.
//! Not here: the text of the statement (sql/copy.rs).

use std::sync::{Arc, Weak};

use datafusion::common::Result as DataFusionResult;
use datafusion::common::tree_node::{Transformed, TreeNode};
use datafusion::logical_expr::LogicalPlan;
use datafusion::logical_expr::dml::CopyTo;
use parking_lot::Mutex;
use serde_json::Value;

use super::stage::StagedFiles;
use super::target::is_stdout;
use crate::error::{Error, Result, nearest_names};

/// The option of DataFusion's COPY that has all that is ours, as an object of JSON.
pub(crate) const REQUEST: &str = "grouse.copy";

/// DataFusion's option of one file or a folder.
const ONE_FILE: &str = "single_file_output";

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
    /// As it is called in a request.
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
        found.ok_or_else(|| Error::Internal(format!("{REQUEST}: {name}")))
    }
}

/// How the rows of a JSON file lie in it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum JsonLayout {
    /// One per line.
    #[default]
    Lines,
    /// In one array.
    Array,
}

/// The writing of one statement.
#[derive(Debug, Default)]
pub(crate) struct Writes {
    pub existing: Existing,
    pub extension: Option<String>,
    pub pattern: Option<String>,
    pub json: JsonLayout,
    /// Columns of CSV whose values always have quotes.
    pub quoted: Vec<String>,
    /// Whether all that the statement writes goes to this process's standard output.
    pub to_stdout: bool,
    stages: Mutex<Vec<Weak<StagedFiles>>>,
}

impl Writes {
    /// Takes what is ours out of a plan.
    pub(crate) fn take(plan: LogicalPlan) -> Result<(LogicalPlan, Writes)> {
        let mut writes = Writes {
            to_stdout: matches!(&plan, LogicalPlan::Copy(copy) if is_stdout(&copy.output_url)),
            ..Writes::default()
        };
        let plan = plan.transform_down(|node| match node {
            LogicalPlan::Copy(copy) => {
                let copy = writes.take_copy(copy)?;
                Ok(Transformed::yes(LogicalPlan::Copy(copy)))
            }
            other => Ok(Transformed::no(other)),
        })?;
        Ok((plan.data, writes))
    }

    fn take_copy(&mut self, mut copy: CopyTo) -> DataFusionResult<CopyTo> {
        let Some(request) = copy.options.remove(REQUEST) else {
            return Ok(copy);
        };
        let request: Value = serde_json::from_str(&request)
            .map_err(|error| Error::Internal(format!("{REQUEST}: {error}")))?;
        let text = |key: &str| request[key].as_str().map(str::to_string);
        self.existing = Existing::named(request["existing"].as_str().unwrap_or_default())?;
        self.extension = text("extension");
        self.pattern = text("pattern");
        if request["is_array"].as_bool() == Some(true) {
            self.json = JsonLayout::Array;
        }
        if let Some(files) = text("files") {
            let is_one = (files == "one").to_string();
            copy.options.insert(ONE_FILE.to_string(), is_one);
        }
        let columns: Vec<String> = copy
            .input
            .schema()
            .fields()
            .iter()
            .map(|field| field.name().clone())
            .collect();
        let list = |key: &str| request[key].as_array().into_iter().flatten();
        let names = list("partition_by").filter_map(Value::as_str);
        let found = names.map(|name| column(name, &columns));
        copy.partition_by = found.collect::<Result<Vec<String>>>()?;
        let quoted = list("quoted").filter_map(Value::as_str);
        let quoted = quoted.map(|name| column(name, &columns));
        self.quoted = quoted.collect::<Result<Vec<String>>>()?;
        for option in list("options") {
            if let (Some(key), Some(value)) = (option[0].as_str(), option[1].as_str()) {
                copy.options
                    .insert(key_of(key, &columns)?, value.to_string());
            }
        }
        Ok(copy)
    }

    /// Files of this statement that are under way, so that it can take them back.
    pub(super) fn watch(&self, stage: &Arc<StagedFiles>) {
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

/// DataFusion's key; behind `::` is a column.
fn key_of(key: &str, columns: &[String]) -> Result<String> {
    match key.split_once("::") {
        Some((option, name)) => {
            // A part of a nested column is known to the format only, and a key of a file's own data to nobody.
            let is_column = !name.contains('.') && !option.to_lowercase().ends_with("metadata");
            let name = match is_column {
                true => column(name, columns)?,
                false => name.to_string(),
            };
            Ok(format!("{}::{name}", option.to_lowercase()))
        }
        None => Ok(key.to_lowercase()),
    }
}

/// The column of this name, else the one that differs in case only.
fn column(name: &str, columns: &[String]) -> Result<String> {
    if columns.iter().any(|one| one == name) {
        return Ok(name.to_string());
    }
    let mut alike = columns.iter().filter(|one| one.eq_ignore_ascii_case(name));
    match (alike.next(), alike.next()) {
        (Some(one), None) => Ok(one.clone()),
        _ => Err(Error::UnknownColumn {
            name: name.to_string(),
            nearest: nearest_names(name, columns.iter().map(String::as_str)),
            position: None,
        }),
    }
}
