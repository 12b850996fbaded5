//! Functions that know their session's time zone: the registered ones, made anew for it.
//!
//! In: zones of sessions that plan here and of messages. Out: their functions.
//! Invariant: the zone of a function is known here before the function is written: its session has said it, or its message was read.
//! Not here: functions that are the same in all zones.

use std::collections::BTreeMap;
use std::sync::{Arc, LazyLock};

use datafusion::common::{Result, internal_err};
use datafusion::config::ConfigOptions;
use datafusion::execution::FunctionRegistry;
use datafusion::logical_expr::ScalarUDF;
use parking_lot::Mutex;

use super::FUNCTIONS;

/// Options that differ in their zone, by that.
static ZONES: LazyLock<Mutex<BTreeMap<String, Arc<ConfigOptions>>>> = LazyLock::new(Mutex::default);

/// Makes a session's zone known.
pub(crate) fn meet(options: &ConfigOptions) {
    if let Some(zone) = &options.execution.time_zone {
        options_in(zone);
    }
}

/// The zone that this function is made for.
pub(super) fn zone_of(function: &ScalarUDF) -> Option<String> {
    let registered = FUNCTIONS.udf(function.name()).ok()?;
    let zones = ZONES.lock();
    let found = zones.iter().find(|(_, options)| {
        let made = registered.inner().with_updated_config(options);
        made.is_some_and(|made| made == *function)
    });
    found.map(|(zone, _)| zone.clone())
}

/// The function of that name in a zone.
pub(super) fn in_zone(name: &str, zone: &[u8]) -> Result<Arc<ScalarUDF>> {
    let Ok(zone) = str::from_utf8(zone) else {
        return internal_err!("the message of a function has no time zone");
    };
    let registered = FUNCTIONS.udf(name)?;
    match registered.inner().with_updated_config(&options_in(zone)) {
        Some(made) => Ok(Arc::new(made)),
        None => internal_err!("the function {name} is the same in all time zones"),
    }
}

fn options_in(zone: &str) -> Arc<ConfigOptions> {
    let mut zones = ZONES.lock();
    let known = zones.entry(zone.to_string()).or_insert_with(|| {
        let mut options = ConfigOptions::new();
        options.execution.time_zone = Some(zone.to_string());
        Arc::new(options)
    });
    Arc::clone(known)
}
