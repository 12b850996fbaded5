//! Options: one table from which SQL `SET`, the shell's flags, Python's keywords and the documentation follow.
//!
//! In: a name and a text value, from any of those four places.
//! Out: [`SessionOptions`], also stored in DataFusion's configuration under the prefix `grouse`.
//! Invariant: an option exists only as a row of [`OPTIONS`]; values are checked when they are set.
//! Not here: DataFusion's own options (`SET datafusion.…`), what we set them to (datafusion_options.rs).

use std::any::Any;
use std::fmt;
use std::path::PathBuf;
use std::str::FromStr;
use std::time::Duration;

use datafusion::common::DataFusionError;
use datafusion::config::{ConfigEntry, ConfigExtension, ConfigOptions, ExtensionOptions};

use grouse_groupby::runtime::Topology;
use grouse_groupby::{Sizes, TableKind, WORKING_BYTES};

use crate::error::Error;
use crate::runtime::faults::Fault;
use crate::runtime::memory::machine_memory_bytes;
use crate::runtime::worker_count::worker_count;

/// Share of the machine's (or the cgroup's) memory that a session takes when no limit is given, in percent.
pub const MEMORY_LIMIT_DEFAULT_PERCENT: u64 = 80;

/// Rows per batch when the option is not set: DataFusion's figure.
pub const BATCH_SIZE_DEFAULT_ROWS: usize = 8192;

/// Settings of one session. [`Default`] is what a new user gets.
#[derive(Debug, Clone, PartialEq)]
pub struct SessionOptions {
    /// Worker threads; 0 = as the machine and the cgroups suggest (`worker_count.rs`).
    pub threads: usize,
    /// Bytes that the operators of all queries of the session may hold; `None` = 80 % of the machine or cgroup.
    pub memory_limit: Option<u64>,
    /// Folders for the files of queries that run out of memory, used in turn; none = the system's.
    pub temp_directory: Vec<PathBuf>,
    /// Bytes that those files may hold together; `None` = what the disks have.
    pub max_temp_directory_size: Option<u64>,
    /// Rows per batch between operators.
    pub batch_size: usize,
    /// How long a statement may take: its planning, and then each run of it; `None` = for ever.
    pub statement_timeout: Option<Duration>,
    /// Whether rows that nothing orders or groups come in the order of their files and tables.
    pub preserve_insertion_order: bool,
    /// Whether scans leave out rows that a condition is known not to hold for, and whether what filters find is kept.
    pub condition_cache: bool,
    /// Which operator groups.
    pub group_by_operator: GroupByOperator,
    /// Which key table groups.
    pub group_by_table: TableKind,
    /// When key tables are emptied, skipped and split.
    pub group_by_sizes: GroupBySizes,
    /// Whether scans below it hand out strings as codes of the file's dictionaries.
    pub group_by_codes: bool,
    /// Tasks among which a grouping is divided, as a cluster does it; 0 = none: it is whole.
    pub group_by_tasks: usize,
    /// Which of its calls for files and memory a grouping is refused.
    pub group_by_fault: Option<Fault>,
    /// Address of the scheduler of the cluster that runs statements; `None` = this process runs them.
    pub cluster: Option<String>,
    /// Region of `s3://` buckets; `None` = as the AWS environment variables say.
    pub s3_region: Option<String>,
    /// Address of an S3 server other than AWS, for example `http://localhost:9000`.
    pub s3_endpoint: Option<String>,
    /// Whether statements reach files of this machine that are in none of the allowed folders.
    pub allow_files: bool,
    /// Folders whose files statements may read and write; with any, they reach no others.
    pub allowed_directories: Vec<PathBuf>,
    /// Whether statements reach web servers and buckets.
    pub allow_network: bool,
    /// Whether `SET` and `RESET` are refused.
    pub lock_options: bool,
    /// Whose options `SET` takes: tests ask for more than users have.
    pub settable: Audience,
}

impl Default for SessionOptions {
    fn default() -> Self {
        SessionOptions {
            threads: 0,
            memory_limit: None,
            temp_directory: Vec::new(),
            max_temp_directory_size: None,
            batch_size: BATCH_SIZE_DEFAULT_ROWS,
            statement_timeout: None,
            preserve_insertion_order: true,
            condition_cache: true,
            group_by_operator: GroupByOperator::Grouse,
            group_by_table: TableKind::Auto,
            group_by_sizes: GroupBySizes::Machine,
            group_by_codes: true,
            group_by_tasks: 0,
            group_by_fault: None,
            cluster: None,
            s3_region: None,
            s3_endpoint: None,
            allow_files: true,
            allowed_directories: Vec::new(),
            allow_network: true,
            lock_options: false,
            settable: Audience::User,
        }
    }
}

/// Which operator runs a GROUP BY.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupByOperator {
    /// Our own.
    Grouse,
    /// DataFusion's `AggregateExec`, to compare with.
    DataFusion,
}

impl fmt::Display for GroupByOperator {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            GroupByOperator::Grouse => "grouse",
            GroupByOperator::DataFusion => "datafusion",
        })
    }
}

impl FromStr for GroupByOperator {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, String> {
        match text {
            "grouse" => Ok(GroupByOperator::Grouse),
            "datafusion" => Ok(GroupByOperator::DataFusion),
            _ => Err("must be 'grouse' or 'datafusion'".to_string()),
        }
    }
}

/// The sizes that steer our operator.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum GroupBySizes {
    /// As the machine's caches suggest.
    Machine,
    /// So small that a few hundred rows take every path.
    Tiny,
    /// As small, and everything goes to disk.
    Spilling,
}

impl GroupBySizes {
    /// The sizes for `workers` workers.
    pub fn sizes(self, workers: usize) -> Sizes {
        match self {
            GroupBySizes::Machine => {
                Sizes::for_machine(workers, Topology::of_this_machine().l2_bytes(workers))
            }
            GroupBySizes::Tiny => Sizes::tiny(),
            GroupBySizes::Spilling => Sizes::spilling(),
        }
    }
}

/// Names of the key tables.
const TABLES: &[(&str, TableKind)] = &[
    ("auto", TableKind::Auto),
    ("direct", TableKind::Direct),
    ("packed", TableKind::Packed),
    ("bytes", TableKind::Bytes),
    ("row", TableKind::Row),
];

/// Names of the sizes.
const SIZES: &[(&str, GroupBySizes)] = &[
    ("machine", GroupBySizes::Machine),
    ("tiny", GroupBySizes::Tiny),
    ("spilling", GroupBySizes::Spilling),
];

/// Names of what is there or is not; the first of each is the one that is shown.
const SWITCHES: &[(&str, bool)] = &[
    ("on", true),
    ("off", false),
    ("true", true),
    ("false", false),
];

fn name_of<T: PartialEq>(names: &[(&str, T)], value: &T) -> Option<String> {
    let found = names.iter().find(|(_, known)| known == value);
    found.map(|(name, _)| (*name).to_string())
}

fn parse_name<T: Copy>(names: &[(&str, T)], text: &str) -> Result<T, String> {
    let text = text.to_ascii_lowercase();
    let found = names.iter().find(|(name, _)| *name == text);
    found.map(|(_, value)| *value).ok_or_else(|| {
        let names: Vec<_> = names.iter().map(|(name, _)| *name).collect();
        format!("must be one of {}", names.join(", "))
    })
}

/// Who an option is for: tests' options are hidden from help and documentation.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Audience {
    /// Everybody: a flag, a keyword, a line in the documentation.
    User,
    /// Those who compare: only SQL `SET`.
    Benchmark,
    /// Tests: only sessions whose program says so.
    Test,
}

/// One row of the table of options.
pub struct OptionSpec {
    /// Name in SQL and Python; the shell's flag has `-` for `_`.
    pub name: &'static str,
    /// What to write for the value in help strings.
    pub value: &'static str,
    /// The default, in words.
    pub default: &'static str,
    /// One or two sentences.
    pub doc: &'static str,
    /// Who it is for.
    pub audience: Audience,
    get: fn(&SessionOptions) -> Option<String>,
    set: fn(&mut SessionOptions, &str) -> Result<(), String>,
}

impl fmt::Debug for OptionSpec {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OptionSpec")
            .field("name", &self.name)
            .finish_non_exhaustive()
    }
}

/// Every option there is.
pub const OPTIONS: &[OptionSpec] = &[
    OptionSpec {
        name: "threads",
        value: "N",
        default: "0 (all)",
        doc: "Worker threads; 0 = one for each CPU, on machines with more than 64 one for each core; no more than a cgroup's quota.",
        audience: Audience::User,
        get: |options| Some(options.threads.to_string()),
        set: |options, text| {
            options.threads = parse_count(text, 0..=THREADS_MAX)?;
            Ok(())
        },
    },
    OptionSpec {
        name: "memory_limit",
        value: "SIZE",
        default: "80%",
        doc: "Memory that queries may hold, such as '4GB', '512MiB' or '80%' (of the machine or cgroup); 'unlimited' = no limit.",
        audience: Audience::User,
        get: |options| options.memory_limit.map(|bytes| bytes.to_string()),
        set: |options, text| {
            options.memory_limit = Some(parse_memory_bytes(text)?);
            Ok(())
        },
    },
    OptionSpec {
        name: "temp_directory",
        value: "PATH",
        default: "the system's",
        doc: "Folder for the files of queries that need more memory than they may hold; several, with ':' between them, are used in turn.",
        audience: Audience::User,
        get: |options| joined(&options.temp_directory),
        set: |options, text| {
            options.temp_directory = paths(text);
            Ok(())
        },
    },
    OptionSpec {
        name: "max_temp_directory_size",
        value: "SIZE",
        default: "unlimited",
        doc: "Bytes that the temporary files of the session's queries may hold together, such as '100GB'.",
        audience: Audience::User,
        get: |options| {
            options
                .max_temp_directory_size
                .map(|bytes| bytes.to_string())
        },
        set: |options, text| {
            let bytes = parse_bytes(text, None)?;
            options.max_temp_directory_size = (bytes < u64::MAX).then_some(bytes);
            Ok(())
        },
    },
    OptionSpec {
        name: "batch_size",
        value: "ROWS",
        default: "8192",
        doc: "Rows per batch between operators and in the result.",
        audience: Audience::User,
        get: |options| Some(options.batch_size.to_string()),
        set: |options, text| {
            options.batch_size = parse_count(text, 1..=BATCH_SIZE_MAX_ROWS)?;
            Ok(())
        },
    },
    OptionSpec {
        name: "statement_timeout",
        value: "TIME",
        default: "none",
        doc: "How long a statement may run, such as '30s', '5min' or a number of milliseconds; 0 is for ever.",
        audience: Audience::User,
        get: |options| options.statement_timeout.map(time_text),
        set: |options, text| {
            options.statement_timeout = parse_time(text)?;
            Ok(())
        },
    },
    OptionSpec {
        name: "preserve_insertion_order",
        value: "on|off",
        default: "on",
        doc: "Rows that no GROUP BY, join or ORDER BY changes come in the order of their files and tables; 'off' is faster for large results.",
        audience: Audience::User,
        get: |options| name_of(SWITCHES, &options.preserve_insertion_order),
        set: |options, text| {
            options.preserve_insertion_order = parse_name(SWITCHES, text)?;
            Ok(())
        },
    },
    OptionSpec {
        name: "condition_cache",
        value: "on|off",
        default: "on",
        doc: "Remembers for which rows of Parquet files a WHERE held, so that a GROUP BY with the same condition reads only those.",
        audience: Audience::User,
        get: |options| name_of(SWITCHES, &options.condition_cache),
        set: |options, text| {
            options.condition_cache = parse_name(SWITCHES, text)?;
            Ok(())
        },
    },
    OptionSpec {
        name: "cluster",
        value: "ADDRESS",
        default: "none",
        doc: "Scheduler of the cluster that runs the statements, such as 'df://host:50050'; '' = this machine runs them.",
        audience: Audience::User,
        get: |options| options.cluster.clone(),
        set: |options, text| {
            options.cluster = non_empty(text);
            Ok(())
        },
    },
    OptionSpec {
        name: "s3_region",
        value: "NAME",
        default: "AWS_REGION",
        doc: "Region of s3:// buckets.",
        audience: Audience::User,
        get: |options| options.s3_region.clone(),
        set: |options, text| {
            options.s3_region = non_empty(text);
            Ok(())
        },
    },
    OptionSpec {
        name: "s3_endpoint",
        value: "URL",
        default: "AWS_ENDPOINT_URL",
        doc: "Address of an S3 server other than AWS, such as 'http://localhost:9000'.",
        audience: Audience::User,
        get: |options| options.s3_endpoint.clone(),
        set: |options, text| {
            options.s3_endpoint = non_empty(text);
            Ok(())
        },
    },
    OptionSpec {
        name: "allow_files",
        value: "on|off",
        default: "on",
        doc: "Statements read and write files of this machine; once off it stays off. Folders of allowed_directories stay open.",
        audience: Audience::User,
        get: |options| name_of(SWITCHES, &options.allow_files),
        set: |options, text| {
            options.allow_files = parse_name(SWITCHES, text)?;
            Ok(())
        },
    },
    OptionSpec {
        name: "allowed_directories",
        value: "PATH",
        default: "all",
        doc: "The only folders whose files statements read and write, with ':' between them; cannot be changed once set.",
        audience: Audience::User,
        get: |options| joined(&options.allowed_directories),
        set: |options, text| {
            options.allowed_directories = paths(text);
            Ok(())
        },
    },
    OptionSpec {
        name: "allow_network",
        value: "on|off",
        default: "on",
        doc: "Statements reach web servers and buckets; once off it stays off.",
        audience: Audience::User,
        get: |options| name_of(SWITCHES, &options.allow_network),
        set: |options, text| {
            options.allow_network = parse_name(SWITCHES, text)?;
            Ok(())
        },
    },
    OptionSpec {
        name: "lock_options",
        value: "off|on",
        default: "off",
        doc: "Refuses SET and RESET of every option from now on, this one too.",
        audience: Audience::User,
        get: |options| name_of(SWITCHES, &options.lock_options),
        set: |options, text| {
            options.lock_options = parse_name(SWITCHES, text)?;
            Ok(())
        },
    },
    OptionSpec {
        name: "group_by_operator",
        value: "grouse|datafusion",
        default: "grouse",
        doc: "Which operator groups: our own or DataFusion's.",
        audience: Audience::Benchmark,
        get: |options| Some(options.group_by_operator.to_string()),
        set: |options, text| {
            options.group_by_operator = text.to_ascii_lowercase().parse()?;
            Ok(())
        },
    },
    OptionSpec {
        name: "group_by_table",
        value: "auto|direct|packed|bytes|row",
        default: "auto",
        doc: "Which key table groups, where the key types allow it.",
        audience: Audience::Test,
        get: |options| name_of(TABLES, &options.group_by_table),
        set: |options, text| {
            options.group_by_table = parse_name(TABLES, text)?;
            Ok(())
        },
    },
    OptionSpec {
        name: "group_by_sizes",
        value: "machine|tiny|spilling",
        default: "machine",
        doc: "When key tables are emptied, skipped and split; tiny makes small inputs take every path, spilling that and the one to disk.",
        audience: Audience::Test,
        get: |options| name_of(SIZES, &options.group_by_sizes),
        set: |options, text| {
            options.group_by_sizes = parse_name(SIZES, text)?;
            Ok(())
        },
    },
    OptionSpec {
        name: "group_by_codes",
        value: "on|off",
        default: "on",
        doc: "Scans below a GROUP BY hand out strings as codes of a Parquet file's dictionaries where they can, to compare with strings.",
        audience: Audience::Benchmark,
        get: |options| name_of(SWITCHES, &options.group_by_codes),
        set: |options, text| {
            options.group_by_codes = parse_name(SWITCHES, text)?;
            Ok(())
        },
    },
    OptionSpec {
        name: "group_by_tasks",
        value: "N",
        default: "0",
        doc: "Divides a GROUP BY into two stages with an exchange between them, the first one into so many tasks, as a cluster does it; 0 = not at all.",
        audience: Audience::Test,
        get: |options| Some(options.group_by_tasks.to_string()),
        set: |options, text| {
            options.group_by_tasks = parse_count(text, 0..=TASKS_MAX)?;
            Ok(())
        },
    },
    OptionSpec {
        name: "group_by_fault",
        value: "CALL:N[+]",
        default: "none",
        doc: "Refuses a grouping its Nth create, write, read or grow (of memory); with '+' those after it as well.",
        audience: Audience::Test,
        get: |options| options.group_by_fault.map(|fault| fault.to_string()),
        set: |options, text| {
            options.group_by_fault = Some(text.parse()?);
            Ok(())
        },
    },
];

/// More workers than any machine that we know offers is a typing error.
const THREADS_MAX: usize = 4096;

/// Each task has a grouping of its own.
const TASKS_MAX: usize = 64;

/// Above this a batch no longer fits any cache and offsets of its strings come near 2^31.
const BATCH_SIZE_MAX_ROWS: usize = 1 << 20;

impl SessionOptions {
    /// Sets one option from its text, as SQL, flags and keywords do.
    pub fn set(&mut self, name: &str, value: &str) -> Result<(), Error> {
        let spec = OptionSpec::find(name).ok_or_else(|| unknown_option(name))?;
        (spec.set)(self, value.trim()).map_err(|reason| {
            Error::invalid(
                spec.name.to_string(),
                format!("'{value}' is not possible: {reason}"),
            )
        })
    }

    /// The text of one option's value; `None` = not set.
    pub fn get(&self, name: &str) -> Result<Option<String>, Error> {
        let spec = OptionSpec::find(name).ok_or_else(|| unknown_option(name))?;
        Ok((spec.get)(self))
    }

    /// Puts one option back to its default.
    pub fn reset(&mut self, name: &str) -> Result<(), Error> {
        let spec = OptionSpec::find(name).ok_or_else(|| unknown_option(name))?;
        match (spec.get)(&SessionOptions::default()) {
            Some(text) => self.set(name, &text),
            None => {
                self.clear(spec.name);
                Ok(())
            }
        }
    }

    /// Un-sets the options whose default is "not set".
    fn clear(&mut self, name: &str) {
        let default = SessionOptions::default();
        match name {
            "memory_limit" => self.memory_limit = default.memory_limit,
            "temp_directory" => self.temp_directory = default.temp_directory,
            "allowed_directories" => self.allowed_directories = default.allowed_directories,
            "max_temp_directory_size" => {
                self.max_temp_directory_size = default.max_temp_directory_size;
            }
            "statement_timeout" => self.statement_timeout = default.statement_timeout,
            "group_by_fault" => self.group_by_fault = default.group_by_fault,
            "cluster" => self.cluster = default.cluster,
            "s3_region" => self.s3_region = default.s3_region,
            "s3_endpoint" => self.s3_endpoint = default.s3_endpoint,
            other => unreachable!("option {other} has a default text"),
        }
    }

    /// Worker threads in effect (never 0).
    pub fn threads_effective(&self) -> usize {
        match self.threads {
            0 => worker_count(Topology::of_this_machine()),
            threads => threads,
        }
    }

    /// Memory limit in effect.
    pub fn memory_limit_bytes(&self) -> u64 {
        self.memory_limit
            .unwrap_or_else(|| percent_of_machine(MEMORY_LIMIT_DEFAULT_PERCENT as f64))
    }

    /// An error where options do not fit each other.
    pub(crate) fn check(&self) -> Result<(), Error> {
        let threads = self.threads_effective();
        let least = (WORKING_BYTES * threads) as u64;
        match self.memory_limit {
            Some(limit) if limit < least => Err(Error::invalid(
                "memory_limit",
                format!(
                    "{limit} bytes are too few for {threads} threads, each of which holds \
                     {WORKING_BYTES} whatever it groups; {least} is the smallest that works, and fewer threads need less"
                ),
            )),
            _ => Ok(()),
        }
    }

    /// The options of the session that `config` belongs to; rules and operators read theirs here.
    pub fn of(config: &ConfigOptions) -> SessionOptions {
        config
            .extensions
            .get::<SessionOptions>()
            .cloned()
            .unwrap_or_default()
    }
}

impl OptionSpec {
    /// The row with this name; `-` and `_` are the same, case does not matter, a prefix `grouse.` is allowed.
    pub fn find(name: &str) -> Option<&'static OptionSpec> {
        let name = name.to_ascii_lowercase().replace('-', "_");
        let name = name.strip_prefix("grouse.").unwrap_or(&name);
        OPTIONS.iter().find(|spec| spec.name == name)
    }
}

/// The error for a name that no option has.
pub(crate) fn unknown_option(name: &str) -> Error {
    let nearest = crate::error::nearest_names(name, OPTIONS.iter().map(|spec| spec.name));
    let hint = match nearest.as_slice() {
        [] => "SHOW ALL lists the options".to_string(),
        names => format!("did you mean {}?", names.join(", ")),
    };
    Error::invalid(name.to_string(), format!("there is no such option; {hint}"))
}

impl ExtensionOptions for SessionOptions {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn as_any_mut(&mut self) -> &mut dyn Any {
        self
    }

    fn cloned(&self) -> Box<dyn ExtensionOptions> {
        Box::new(self.clone())
    }

    fn set(&mut self, key: &str, value: &str) -> Result<(), DataFusionError> {
        SessionOptions::set(self, key, value).map_err(DataFusionError::from)
    }

    fn entries(&self) -> Vec<ConfigEntry> {
        OPTIONS
            .iter()
            .map(|spec| ConfigEntry {
                key: format!("{}.{}", SessionOptions::PREFIX, spec.name),
                value: (spec.get)(self),
                description: spec.doc,
            })
            .collect()
    }
}

impl ConfigExtension for SessionOptions {
    const PREFIX: &'static str = "grouse";
}

fn non_empty(text: &str) -> Option<String> {
    (!text.is_empty()).then(|| text.to_string())
}

/// Folders with the system's separator between them.
fn paths(text: &str) -> Vec<PathBuf> {
    let paths = std::env::split_paths(text);
    paths.filter(|path| !path.as_os_str().is_empty()).collect()
}

fn joined(paths: &[PathBuf]) -> Option<String> {
    let joined = std::env::join_paths(paths).unwrap_or_default();
    non_empty(&joined.to_string_lossy())
}

fn parse_count(text: &str, range: std::ops::RangeInclusive<usize>) -> Result<usize, String> {
    let expected = || {
        format!(
            "it must be a whole number from {} to {}",
            range.start(),
            range.end()
        )
    };
    let count: usize = text.parse().map_err(|_| expected())?;
    if range.contains(&count) {
        Ok(count)
    } else {
        Err(expected())
    }
}

/// Bytes of '4GB' (powers of 1000), '512MiB' or '4G' (powers of 1024), '80%' of the machine, 'unlimited' or a plain number.
pub fn parse_memory_bytes(text: &str) -> Result<u64, String> {
    parse_bytes(text, Some(machine_memory_bytes))
}

/// A number and its unit in lower case, such as `4GB` and `30 s`; the unit may be missing.
fn number_and_unit(text: &str) -> Option<(f64, String)> {
    let unit_start = text
        .find(|c: char| !c.is_ascii_digit() && c != '.')
        .unwrap_or(text.len());
    let (number, unit) = text.split_at(unit_start);
    Some((number.parse().ok()?, unit.trim().to_ascii_lowercase()))
}

/// A size; percentages are of `whole`.
pub(crate) fn parse_bytes(text: &str, whole: Option<fn() -> u64>) -> Result<u64, String> {
    let expected = || {
        let percent = whole.map_or("", |_| ", '80%'");
        format!("it must be a size such as '4GB', '512MiB'{percent} or 'unlimited'")
    };
    let text = text.trim();
    if text.eq_ignore_ascii_case("unlimited") || text.eq_ignore_ascii_case("none") {
        return Ok(u64::MAX);
    }
    let (number, unit) = number_and_unit(text).ok_or_else(expected)?;
    let factor = match unit.as_str() {
        "%" if number > 0.0 && number <= 100.0 => {
            let whole = whole.ok_or_else(expected)?;
            return Ok((whole() as f64 * number / 100.0) as u64);
        }
        "" | "b" => 1.0,
        "kb" => 1e3,
        "mb" => 1e6,
        "gb" => 1e9,
        "tb" => 1e12,
        "k" | "kib" => 1024.0,
        "m" | "mib" => 1024.0 * 1024.0,
        "g" | "gib" => 1024.0 * 1024.0 * 1024.0,
        "t" | "tib" => 1024.0 * 1024.0 * 1024.0 * 1024.0,
        _ => return Err(expected()),
    };
    let bytes = number * factor;
    if bytes < 1.0 || bytes >= u64::MAX as f64 {
        return Err(expected());
    }
    Ok(bytes as u64)
}

/// A time such as `30s`; a bare number is milliseconds, as in PostgreSQL. `None` of 0 and `none`.
fn parse_time(text: &str) -> Result<Option<Duration>, String> {
    let expected = "it must be a time such as '30s', '500ms', '5min', '1h', or 'none'";
    if text.eq_ignore_ascii_case("none") || text.eq_ignore_ascii_case("unlimited") {
        return Ok(None);
    }
    let (number, unit) = number_and_unit(text).ok_or_else(|| expected.to_string())?;
    let seconds = match unit.as_str() {
        "" | "ms" => 1e-3,
        "s" => 1.0,
        "min" => 60.0,
        "h" => 3600.0,
        "d" => 86_400.0,
        _ => return Err(expected.to_string()),
    };
    let time = Duration::try_from_secs_f64(number * seconds).map_err(|_| expected.to_string())?;
    let millis = Duration::from_millis(time.as_millis().try_into().unwrap_or(u64::MAX));
    match (number == 0.0, millis.is_zero()) {
        (true, _) => Ok(None),
        (false, true) => Err("less than a millisecond".to_string()),
        (false, false) => Ok(Some(millis)),
    }
}

/// As `parse_time` reads it.
pub(crate) fn time_text(time: Duration) -> String {
    match time.subsec_millis() {
        0 => format!("{}s", time.as_secs()),
        _ => format!("{}ms", time.as_millis()),
    }
}

fn percent_of_machine(percent: f64) -> u64 {
    (machine_memory_bytes() as f64 * percent / 100.0) as u64
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes() {
        assert_eq!(parse_memory_bytes("4GB"), Ok(4_000_000_000));
        assert_eq!(parse_memory_bytes("512MiB"), Ok(512 << 20));
        assert_eq!(parse_memory_bytes("1.5g"), Ok(3 << 29));
        assert_eq!(parse_memory_bytes(" 100 kb "), Ok(100_000));
        assert_eq!(parse_memory_bytes("12345"), Ok(12345));
        assert_eq!(parse_memory_bytes("unlimited"), Ok(u64::MAX));
        assert_eq!(parse_memory_bytes("100%"), Ok(machine_memory_bytes()));
        for wrong in [
            "", "GB", "4 apples", "-1GB", "0", "0%", "101%", "1e30TB", "1.2.3GB",
        ] {
            assert!(parse_memory_bytes(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn times() {
        let of = |text| parse_time(text).map(|time| time.map(time_text));
        assert_eq!(of("1500"), Ok(Some("1500ms".to_string())));
        assert_eq!(of("1.5 s"), Ok(Some("1500ms".to_string())));
        assert_eq!(of("2min"), Ok(Some("120s".to_string())));
        assert_eq!(of("1H"), Ok(Some("3600s".to_string())));
        assert_eq!(of("0"), Ok(None));
        assert_eq!(of("none"), Ok(None));
        for wrong in ["", "s", "-1s", "1 fortnight", "0.1ms", "1e400", "1.2.3"] {
            assert!(parse_time(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn every_option_round_trips_and_resets() {
        for spec in OPTIONS {
            let mut options = SessionOptions::default();
            let sample = match spec.value {
                "N" | "ROWS" => "7",
                "SIZE" => "7",
                "TIME" => "7s",
                "grouse|datafusion" => "datafusion",
                "auto|direct|packed|bytes|row" => "row",
                "machine|tiny|spilling" => "tiny",
                "on|off" => "off",
                "off|on" => "on",
                "CALL:N[+]" => "write:2+",
                _ => "x",
            };
            options.set(spec.name, sample).unwrap();
            assert_eq!(options.get(spec.name).unwrap().as_deref(), Some(sample));
            assert_ne!(options, SessionOptions::default(), "{}", spec.name);
            options.reset(spec.name).unwrap();
            assert_eq!(options, SessionOptions::default(), "{}", spec.name);
        }
    }

    #[test]
    fn names_are_forgiving_and_errors_name_the_option() {
        let mut options = SessionOptions::default();
        options.set("grouse.Memory-Limit", "1GB").unwrap();
        assert_eq!(options.memory_limit, Some(1_000_000_000));
        let error = options.set("theads", "4").unwrap_err().to_string();
        assert!(
            error.contains("theads") && error.contains("threads"),
            "{error}"
        );
        let error = options.set("threads", "-1").unwrap_err().to_string();
        assert!(error.contains("threads") && error.contains("-1"), "{error}");
    }
}
