//! Profiles: what a query's workers did when.

use futures::StreamExt;
use grouse::{Error, Lane, Phase, Profile, Query, Session};

use crate::support::{run, session, session_of_threads};

const GROUPING: &str =
    "SELECT number % 1000 AS k, count(*) AS c FROM numbers(300000) GROUP BY k ORDER BY c, k";

/// Plans a query.
fn planned(session: &Session, sql: &str) -> Query {
    let handle = session.handle().clone();
    handle.block_on(session.query(sql)).expect("a plan")
}

/// The profile of a query that runs to its end, or fails.
fn profile(session: &Session, sql: &str) -> Profile {
    let query = planned(session, sql);
    let recording = query.record();
    let mut stream = query.execute().expect("it starts");
    let failure = session.handle().block_on(async {
        while let Some(batch) = stream.next().await {
            if let Err(error) = batch {
                return Some(Error::from(error));
            }
        }
        None
    });
    drop(stream);
    recording.finish(failure.as_ref())
}

#[test]
fn spans_hold_every_row_once_and_lie_within_the_query() {
    let profile = profile(&session_of_threads(3), GROUPING);
    let rows = |phase| {
        let of = profile.spans.iter().filter(|span| span.phase == phase);
        of.map(|span| span.rows).sum::<u64>()
    };
    assert_eq!(rows(Phase::Scan), 300_000);
    assert_eq!(rows(Phase::Build), 300_000);
    assert_eq!((rows(Phase::Emit), rows(Phase::Output)), (1_000, 1_000));
    assert_eq!(profile.threads, 3);
    for span in &profile.spans {
        assert!(
            span.start <= span.end && span.end <= profile.wall,
            "{span:?}"
        );
    }
    // No lane does two things at once.
    for lane in profile.spans.iter().map(|span| span.lane) {
        let mut spans: Vec<_> = profile
            .spans
            .iter()
            .filter(|span| span.lane == lane)
            .collect();
        spans.sort_by_key(|span| span.start);
        let apart = spans.windows(2).all(|two| two[0].end <= two[1].start);
        assert!(apart, "{lane:?}");
    }
    assert!(profile.spans.iter().any(|span| span.lane == Lane::Planner));
}

#[test]
fn totals_share_out_the_threads_time() {
    let profile = profile(&session_of_threads(3), GROUPING);
    let totals = profile.totals();
    let work: std::time::Duration = totals.phases.iter().map(|phase| phase.cpu).sum();
    assert_eq!(totals.work, work);
    let scan = totals
        .phases
        .iter()
        .find(|of| of.phase == Phase::Scan)
        .expect("it scans");
    assert!(scan.slowest <= scan.busy && scan.longest <= scan.slowest && scan.imbalance() >= 1.0);
    assert!(totals.serial <= totals.wall);
    let text = profile.summary();
    for word in [
        "wall time",
        "at most one worked",
        "waiting for input",
        "scan",
        "merge",
    ] {
        assert!(text.contains(word), "{word}: {text}");
    }
}

#[test]
fn a_trace_is_read_back_as_it_was() {
    let profile = profile(&session_of_threads(2), GROUPING);
    let json = profile.to_json();
    assert_eq!(Profile::from_json(&json).expect("its own"), profile);
    let unchanged = profile.compared(&profile);
    let is_same = |line: &str| {
        line.split_whitespace()
            .any(|cell| cell == "1.00" || cell == "new")
    };
    assert!(unchanged.lines().skip(1).all(is_same), "{unchanged}");
    for other in ["", "[1]", r#"{"traceEvents": []}"#] {
        let error = Profile::from_json(other).expect_err(other).to_string();
        assert!(error.contains("no profile of grouse"), "{error}");
    }
}

#[test]
fn a_page_holds_the_query_as_text() {
    let sql = "SELECT '</script><b>' AS s, count(*) FROM numbers(10) GROUP BY s";
    let page = profile(&session(), sql).to_html();
    assert_eq!(page.matches("</script>").count(), 1);
    assert!(page.contains("\\u003c/script>") && !page.contains("/*data*/null"));
    assert!(!page.contains("http"), "it fetches nothing");
}

#[test]
fn a_query_that_fails_has_a_profile() {
    let sql = "SELECT 10 / (number - 250000) AS k, count(*) FROM (SELECT number::BIGINT AS number FROM numbers(300000)) GROUP BY k";
    let profile = profile(&session(), sql);
    assert!(
        profile
            .failure
            .as_ref()
            .is_some_and(|text| text.contains("division by zero"))
    );
    assert!(profile.spans.iter().any(|span| span.phase == Phase::Scan));
}

#[test]
fn a_query_that_is_dropped_has_a_profile() {
    let session = session();
    let query = planned(&session, "SELECT number FROM numbers(100000000)");
    let recording = query.record();
    let mut stream = query.execute().expect("it starts");
    let first = session.handle().block_on(stream.next());
    assert!(first.is_some_and(|batch| batch.is_ok()));
    drop(stream);
    let profile = recording.finish(Some(&Error::Cancelled));
    assert!(profile.failure.is_some());
    let mut spans = profile.spans.iter();
    assert!(spans.any(|span| span.phase == Phase::Output && span.rows > 0));
    run(&session, "SELECT 1").expect("the session goes on");
}

#[test]
fn nothing_is_recorded_unasked() {
    let session = session();
    let query = planned(&session, GROUPING);
    let mut stream = query.execute().expect("it starts");
    session
        .handle()
        .block_on(async { while stream.next().await.is_some() {} });
    let recording = query.record();
    let profile = recording.finish(None);
    assert!(profile.spans.iter().all(|span| span.lane == Lane::Planner));
}
