//! Differential fuzz: generated queries over generated tables. Our answers under random settings, again where everything
//! goes to disk, and where a call for a file or for memory is refused on the way. Then stock DataFusion's and DuckDB's.
//!
//! In: a seed and a number of queries. Out: [`Report`], or the first difference with all that is needed to repeat it.
//! Invariant: query number n of seed s is the same whatever ran before it: `seed = s + n` and one query repeat it alone.
//! A peer that fails on a query does not judge it; how many were judged by whom is counted, and the caller sets the least.
//! Not here: tables (tables.rs), queries (queries.rs), comparing (answer.rs).

use std::collections::HashMap;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::{Path, PathBuf};
use std::time::Duration;

use datafusion::common::ScalarValue;
use datafusion::prelude::{SessionConfig, SessionContext};
use grouse::{Error, Params, Session};
use tokio::runtime::Runtime;

use crate::answer::{Answer, batches, difference};
use crate::cell::Cell;
use crate::duck::Duck;
use crate::endings::nothing_held;
use crate::queries::Query;
use crate::random::Random;
use crate::setting::Setting;
use crate::tables::Table;

/// Queries over one table.
const QUERIES_PER_TABLE: usize = 20;

/// A query over these small tables that takes longer hangs.
const PATIENCE: Duration = Duration::from_secs(60);

/// What a run has covered.
#[derive(Debug, Clone, Copy, Default)]
pub struct Report {
    /// Queries that we answered, or refused as we should.
    pub queries: usize,
    /// Judged by stock DataFusion.
    pub by_datafusion: usize,
    /// Judged by DuckDB.
    pub by_duck: usize,
    /// Judged by neither.
    pub unjudged: usize,
    /// Run once more with a call that is refused.
    pub faulty: usize,
    /// Of these, ended with the error of that call; the others with the right answer.
    pub failed: usize,
    /// Sums that do not fit and were refused.
    pub overflows: usize,
    /// Queries that gave at least one row.
    pub with_rows: usize,
}

impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{} queries, {} with rows, judged by stock DataFusion: {}, by DuckDB: {}, by neither: {}, refused overflows: {}; \
             with a fault on the way: {}, of which failed as they should: {}",
            self.queries,
            self.with_rows,
            self.by_datafusion,
            self.by_duck,
            self.unjudged,
            self.overflows,
            self.faulty,
            self.failed
        )
    }
}

impl Report {
    /// Fails where the run proves too little: peers that could not answer, answers without rows.
    pub fn assert_broad(&self) {
        let percent = |part: usize| part * 100 / self.queries.max(1);
        assert!(
            percent(self.unjudged) < 1,
            "too many queries that no peer judged: {self}"
        );
        assert!(
            percent(self.by_datafusion) > 60,
            "too few queries judged by stock DataFusion: {self}"
        );
        assert!(
            percent(self.by_duck) > 80,
            "too few queries judged by DuckDB: {self}"
        );
        assert!(
            percent(self.with_rows) > 70,
            "too many empty answers: {self}"
        );
        assert!(
            percent(self.faulty) > 70 && percent(self.failed) > 30,
            "too few faults that a query met: {self}"
        );
    }
}

/// Runs `queries` queries; the first difference ends the run.
pub fn run(seed: u64, queries: usize) -> Result<Report, String> {
    let folder = tempfile::tempdir().expect("a folder for temporary files");
    let mut oracle = Oracle::start(folder.path());
    let mut table = None;
    let mut report = Report::default();
    for number in 0..queries as u64 {
        // The table's seed is that of the first query over it, so that a single query finds the same table.
        let seed = seed + number;
        let table_seed = seed - seed % QUERIES_PER_TABLE as u64;
        if table.as_ref().is_none_or(|(of, _)| *of != table_seed) {
            let made = Table::generate(&mut Random::new(!table_seed), folder.path());
            oracle.load(&made)?;
            table = Some((table_seed, made));
        }
        let (_, table) = table.as_ref().expect("made above");
        let mut random = Random::new(seed);
        let (query, setting) = (Query::random(&mut random), Setting::random(&mut random));
        let from_file = random.chance(30);
        let run = Run {
            setting,
            from_file,
            fault: fault(&mut random),
        };
        oracle.judge(&query, &run, table, &mut report).map_err(|reason| {
            let Run { setting, fault, .. } = &run;
            format!(
                "{reason}\n  ours:   {}\n  duckdb: {}\n  setting: {setting}, spilling, and with {fault}\n  table: {}\n  again: \
                 GROUSE_ORACLE_SEED={seed} GROUSE_ORACLE_QUERIES=1 cargo test --release --workspace --test oracle",
                query.ours, query.duck, table.story
            )
        })?;
    }
    Ok(report)
}

/// How we are asked.
struct Run {
    setting: Setting,
    /// Or from the table in memory.
    from_file: bool,
    /// The call that is refused in a run of its own.
    fault: String,
}

/// Any call: the first ones more often, since tables are small. Refused memory mostly ends in the right answer.
fn fault(random: &mut Random) -> String {
    let call = *random.pick(&["create", "write", "read", "grow"]);
    let most = 1 << random.below(4);
    let lasting = if random.chance(50) { "+" } else { "" };
    format!("{call}:{}{lasting}", 1 + random.below(most))
}

struct Oracle {
    /// Where sessions write.
    folder: PathBuf,
    sessions: HashMap<Setting, Session>,
    runtime: Runtime,
    datafusion: SessionContext,
    duck: Duck,
}

impl Oracle {
    fn start(folder: &Path) -> Oracle {
        let folder = folder.join("spilled");
        std::fs::create_dir(&folder).expect("a new folder");
        Oracle {
            folder,
            sessions: HashMap::new(),
            runtime: Runtime::new().expect("threads"),
            datafusion: SessionContext::new_with_config(
                SessionConfig::new().with_target_partitions(2),
            ),
            duck: Duck::start(),
        }
    }

    /// Gives the table to both peers.
    fn load(&mut self, table: &Table) -> Result<(), String> {
        self.datafusion
            .deregister_table("t")
            .map_err(|error| error.to_string())?;
        self.datafusion
            .register_table("t", table.memory())
            .map_err(|error| error.to_string())?;
        self.duck.ask(&format!(
            "CREATE OR REPLACE TABLE t AS SELECT * FROM '{}'",
            table.path.display()
        ))?;
        Ok(())
    }

    /// Our answer, from the table in memory or from its file.
    fn ours(
        &mut self,
        sql: &str,
        setting: &Setting,
        table: &Table,
        from_file: bool,
    ) -> Result<Answer, Error> {
        if !self.sessions.contains_key(setting) {
            let session = setting.session()?;
            let folder = self.folder.display();
            batches(&session, &format!("SET temp_directory = '{folder}'"))?;
            self.sessions.insert(setting.clone(), session);
        }
        let session = &self.sessions[setting];
        session.deregister("t")?;
        if from_file {
            batches(
                session,
                &format!(
                    "CREATE OR REPLACE VIEW t AS SELECT * FROM '{}'",
                    table.path.display()
                ),
            )?;
        } else {
            session.register("t", table.memory())?;
        }
        // Over the file a literal is a parameter.
        let (sql, params) = match from_file {
            true => with_parameter(sql),
            false => (sql.to_string(), Params::None),
        };
        session.handle().block_on(async {
            tokio::time::timeout(PATIENCE, Answer::of_session(session, &sql, params))
                .await
                .unwrap_or_else(|_| Err(Error::Execution(format!("no answer within {PATIENCE:?}"))))
        })
    }

    fn datafusion(&self, sql: &str) -> Result<Answer, String> {
        let asked = catch_unwind(AssertUnwindSafe(|| {
            self.runtime
                .block_on(async { self.datafusion.sql(sql).await?.collect().await })
        }));
        match asked {
            Ok(Ok(batches)) => Ok(Answer::of(&batches)),
            Ok(Err(error)) => Err(error.to_string()),
            Err(_) => Err("panic".to_string()),
        }
    }

    /// Our answer, or our error; a panic is neither.
    fn asked(
        &mut self,
        query: &Query,
        setting: &Setting,
        table: &Table,
        from_file: bool,
    ) -> Result<Result<Answer, Error>, String> {
        let ours = AssertUnwindSafe(|| self.ours(&query.ours, setting, table, from_file));
        catch_unwind(ours).map_err(|_| "we panic".to_string())
    }

    /// A call that is refused ends in the right answer or in its error, and leaves nothing behind.
    fn refuse(
        &mut self,
        query: &Query,
        run: &Run,
        table: &Table,
        right: &Answer,
        report: &mut Report,
    ) -> Result<(), String> {
        let setting = run.setting.spilling();
        let set = |oracle: &Oracle, statement: String| {
            batches(&oracle.sessions[&setting], &statement)
                .map(drop)
                .map_err(|error| format!("{statement}: {error}"))
        };
        set(self, format!("SET group_by_fault = '{}'", run.fault))?;
        let ours = self.asked(query, &setting, table, run.from_file)?;
        set(self, "RESET group_by_fault".to_string())?;
        report.faulty += 1;
        let is_growth = run.fault.starts_with("grow");
        match ours {
            Ok(ours) => {
                if query.whole.is_none()
                    && let Some(reason) = difference(&ours, right, None, &query.certain)
                {
                    return Err(format!("we disagree after a fault: {reason}"));
                }
            }
            Err(Error::OutOfMemory(_)) if is_growth => report.failed += 1,
            Err(error) if !is_growth && matches!(error.kind(), Error::Io { .. }) => {
                report.failed += 1;
            }
            Err(error) => return Err(format!("another error than the fault's: {error}")),
        }
        nothing_held(&self.sessions[&setting], &self.folder)
            .map_err(|held| format!("after a fault {held}"))
    }

    fn judge(
        &mut self,
        query: &Query,
        run: &Run,
        table: &Table,
        report: &mut Report,
    ) -> Result<(), String> {
        report.queries += 1;
        let (mut answers, mut overflows) = (Vec::new(), 0);
        let settings = [run.setting.clone(), run.setting.spilling()];
        for setting in &settings {
            match self.asked(query, setting, table, run.from_file)? {
                Ok(ours) => answers.push(ours),
                Err(error)
                    if query.may_overflow && matches!(error.kind(), Error::Overflow { .. }) =>
                {
                    overflows += 1;
                }
                Err(error) => return Err(format!("we fail ({setting}): {error}")),
            }
        }
        match (overflows, answers.len()) {
            (0, _) => {}
            (_, 0) => {
                report.overflows += 1;
                return self.overflow_is_right(query);
            }
            _ => return Err("we refuse a sum under one setting alone".to_string()),
        }
        report.with_rows += usize::from(!answers[0].rows.is_empty());

        let (whole_ours, whole_duck) = query.whole.clone().unzip();
        let datafusion = (query.datafusion_judges && !query.may_overflow)
            .then(|| with_whole(|sql| self.datafusion(sql), &query.ours, whole_ours))
            .flatten();
        let duck = query
            .duck_judges
            .then(|| with_whole(|sql| self.duck.ask(sql), &query.duck, whole_duck))
            .flatten();
        let judge = |name: &str, (theirs, whole): &(Answer, Option<Answer>)| {
            for (ours, setting) in answers.iter().zip(&settings) {
                if let Some(reason) = difference(ours, theirs, whole.as_ref(), &query.certain) {
                    return Err(format!("{name} disagrees ({setting}): {reason}"));
                }
            }
            Ok(())
        };
        if query.whole.is_none()
            && let Some(reason) = difference(&answers[1], &answers[0], None, &query.certain)
        {
            return Err(format!(
                "we disagree where everything goes to disk: {reason}"
            ));
        }
        if let Some(theirs) = &duck {
            report.by_duck += 1;
            judge("DuckDB", theirs)?;
        }
        if let Some(theirs) = &datafusion {
            report.by_datafusion += 1;
            judge("stock DataFusion", theirs)?;
        }
        report.unjudged += usize::from(datafusion.is_none() && duck.is_none());
        self.refuse(query, run, table, &answers[1], report)
    }

    /// DuckDB's sums are wider: one of them has to lie outside of our type, or be refused by DuckDB too.
    fn overflow_is_right(&mut self, query: &Query) -> Result<(), String> {
        let fits =
            |cell: &Cell| !matches!(cell, Cell::Int(value) if i64::try_from(*value).is_err());
        match self.duck.ask(&query.duck) {
            Ok(answer) if answer.rows.iter().flatten().all(fits) => {
                Err("we refuse a sum that fits".to_string())
            }
            _ => Ok(()),
        }
    }
}

/// A query whose divisor is a parameter, in keys and conditions alike, if it has one.
fn with_parameter(sql: &str) -> (String, Params) {
    let text = sql.replace("% 3", "% $1");
    let params = match text == sql {
        true => Params::None,
        false => Params::Positional(vec![ScalarValue::Int64(Some(3))]),
    };
    (text, params)
}

/// A peer's answer, and the one without the LIMIT where there is one; `None` if it fails on either.
fn with_whole(
    mut ask: impl FnMut(&str) -> Result<Answer, String>,
    sql: &str,
    whole: Option<String>,
) -> Option<(Answer, Option<Answer>)> {
    let answer = ask(sql).ok()?;
    let whole = whole.map(|sql| ask(&sql)).transpose().ok()?;
    Some((answer, whole))
}
