//! `SET` and `RESET` in a running session.
//!
//! In: the name of an option, and its change. Out: a session with all that follows from it; errors that name the option.
//! Invariant: a change that is refused changes nothing; DataFusion's options are under the same lock as ours.
//! Not here: which options there are and what values they take (runtime/options.rs).

use std::sync::Arc;

use datafusion::arrow::array::timezone::Tz;
use datafusion::logical_expr::{LogicalPlan, Statement as PlanStatement};

use super::Session;
use crate::error::{Error, Result};
use crate::runtime::datafusion_options;
use crate::runtime::options::SessionOptions;
use crate::session::query::Query;
use crate::session::workers::Workers;

impl Session {
    /// Changes options and everything that follows from them.
    pub(super) fn change_options(
        &self,
        name: &str,
        change: impl FnOnce(&mut SessionOptions) -> Result<()>,
    ) -> Result<Query> {
        let _changing = self.shared.changing.lock();
        let before = self.options();
        before.check_settable(name)?;
        let mut options = before.clone();
        change(&mut options)?;
        options.check()?;
        options.check_change(&before)?;
        self.check_cluster(&options)?;
        let reach = |of: &SessionOptions| {
            let folders = of.allowed_directories.clone();
            (of.allow_files, folders, of.allow_network)
        };
        if reach(&options) != reach(&before) {
            self.shared.stores.access().apply(&options)?;
        }
        if (&options.temp_directory, options.max_temp_directory_size)
            != (&before.temp_directory, before.max_temp_directory_size)
        {
            self.shared.temp.apply(&options)?;
        }
        if options.threads_effective() != before.threads_effective() {
            let workers = Arc::new(Workers::new(options.threads_effective())?);
            *self.shared.workers.write() = workers;
        }
        self.shared.pool.set_limit(options.memory_limit_bytes());
        self.shared.stores.apply(&options);
        let state = self.context().state_ref();
        let mut state = state.write();
        datafusion_options::apply(&options, state.config_mut());
        if (options.memory_limit, options.threads) != (before.memory_limit, before.threads) {
            datafusion_options::apply_memory(&options, state.config_mut());
        }
        state.config_mut().options_mut().extensions.insert(options);
        drop(state);
        Ok(self.nothing())
    }
}

/// The option that the statement sets or resets; an error where a session of ours does not take it.
pub(super) fn option_of(plan: &LogicalPlan, options: &SessionOptions) -> Result<Option<String>> {
    let (name, value) = match plan {
        LogicalPlan::Statement(PlanStatement::SetVariable(set)) => {
            (&set.variable, Some(set.value.as_str()))
        }
        LogicalPlan::Statement(PlanStatement::ResetVariable(reset)) => (&reset.variable, None),
        _ => return Ok(None),
    };
    options.check_settable(name)?;
    if let Some(zone) = value.filter(|_| datafusion_options::is_time_zone(name))
        && zone.parse::<Tz>().is_err()
    {
        return Err(Error::invalid(
            name.clone(),
            format!("there is no time zone '{zone}'"),
        ));
    }
    match datafusion_options::refused(name, value) {
        Some((datafusion, why)) => Err(Error::invalid(datafusion.to_string(), why.to_string())),
        None => Ok(Some(name.clone())),
    }
}

/// DataFusion does not say which of its options has a wrong value.
pub(super) fn name_option(error: Error, option: Option<String>) -> Error {
    match (error, option) {
        (Error::Invalid { message, .. } | Error::Execution(message), Some(name)) => {
            Error::invalid(name, message)
        }
        (error, _) => error,
    }
}
