//! Errors of executors on their way to the client, who gets from Ballista nothing but text.
//!
//! In: what stopped a task. Out: an error of DataFusion that Ballista treats as it should. A lost input is made anew, a
//! passing failure of a store is tried again, all else ends the job. Its text has ours within, which the client takes out again.
//! Invariant: `found(mark(error))` is the error, through any text around it and any escaping of quotes.
//! Not here: what errors mean (the engine).

use std::error::Error as StdError;

use ballista_core::error::BallistaError;
use datafusion::common::DataFusionError;
use grouse::{Error, OutOfMemory};

/// What stands before and behind an error in digits.
const MARKS: [&str; 2] = ["[grouse error ", "]"];

/// Between the parts of an error.
const SEPARATOR: char = '\u{1f}';

/// What an executor, which writes to the folder `disk`, tells Ballista of an error that ended a task. `located` adds the file that
/// it is about.
pub async fn told<F: Future<Output = Error>>(
    error: DataFusionError,
    disk: &str,
    located: impl FnOnce(Error) -> F,
) -> DataFusionError {
    if let Some(lost) = lost_input(&error) {
        return DataFusionError::External(Box::new(lost));
    }
    let is_full = is_of_full_disk(&error);
    let passes = is_full || is_passing(&error);
    let error = match is_full {
        true => Error::Io {
            path: disk.to_string(),
            message: "no space is left on the disk of this executor".to_string(),
        },
        false => located(Error::from(meant(&error))).await,
    };
    let text = format!("{error} {}", mark(&error));
    match passes {
        true => DataFusionError::IoError(std::io::Error::other(text)),
        false => DataFusionError::Execution(text),
    }
}

/// The error of a job that failed with this text.
pub fn of_job(text: &str) -> Error {
    found(text).unwrap_or_else(|| Error::Execution(format!("the cluster gave up: {text}")))
}

/// The error of an operator within those of Ballista's.
fn meant(error: &DataFusionError) -> &DataFusionError {
    let inner = causes(error).find_map(|cause| match cause.downcast_ref::<BallistaError>()? {
        BallistaError::DataFusionError(inner) => Some(inner.as_ref()),
        _ => None,
    });
    inner.map_or(error, meant)
}

/// A piece of another task's result that could not be fetched: Ballista makes it anew.
fn lost_input(error: &DataFusionError) -> Option<BallistaError> {
    causes(error).find_map(|cause| match cause.downcast_ref::<BallistaError>()? {
        BallistaError::DataFusionError(inner) => lost_input(inner),
        BallistaError::FetchFailed(executor, stage, partition, text) => Some(
            BallistaError::FetchFailed(executor.clone(), *stage, *partition, text.clone()),
        ),
        _ => None,
    })
}

/// Whether another try may go well: the store was not reached.
fn is_passing(error: &DataFusionError) -> bool {
    causes(error).any(|cause| {
        let store = cause.downcast_ref::<object_store::Error>();
        store.is_some_and(|store| {
            matches!(store, object_store::Error::Generic { .. }) && !is_final(store)
        })
    })
}

/// Whether the disk had no room, as it may have once others have theirs no more. Tasks write to their own machine alone. Of what
/// its writers buffer Ballista has kept the text only.
fn is_of_full_disk(error: &DataFusionError) -> bool {
    causes(error).any(|cause| {
        if let Some(DataFusionError::Execution(text)) = cause.downcast_ref() {
            return text.contains("IoError(") && text.contains("kind: StorageFull");
        }
        cause
            .downcast_ref::<std::io::Error>()
            .is_some_and(|system| system.kind() == std::io::ErrorKind::StorageFull)
    })
}

/// A store's failure that is an error of ours, or about what a file holds.
fn is_final(store: &object_store::Error) -> bool {
    use std::io::ErrorKind::{InvalidData, InvalidInput, UnexpectedEof};
    causes(store).any(|cause| {
        let kind = cause
            .downcast_ref::<std::io::Error>()
            .map(std::io::Error::kind);
        cause.is::<Error>() || matches!(kind, Some(InvalidData | InvalidInput | UnexpectedEof))
    })
}

/// The error, what caused it, and so on.
fn causes<'a>(
    error: &'a (dyn StdError + 'static),
) -> impl Iterator<Item = &'a (dyn StdError + 'static)> {
    std::iter::successors(Some(error), |&error| {
        // An error inside one of the system's or of Ballista's is no source of it.
        let system = error.downcast_ref::<std::io::Error>();
        match (
            system.and_then(std::io::Error::get_ref),
            error.downcast_ref(),
        ) {
            (Some(inner), _) => Some(inner as &(dyn StdError + 'static)),
            (None, Some(BallistaError::IoError(inner))) => Some(inner),
            (None, Some(BallistaError::ArrowError(inner))) => Some(&**inner),
            (None, Some(BallistaError::DataFusionError(inner))) => Some(&**inner),
            _ => error.source(),
        }
    })
}

/// The error as digits, which no escaping changes.
fn mark(error: &Error) -> String {
    let parts = parts(error.kind()).join(&SEPARATOR.to_string());
    let digits: String = parts.bytes().map(|byte| format!("{byte:02x}")).collect();
    format!("{}{digits}{}", MARKS[0], MARKS[1])
}

/// The error within a text.
fn found(text: &str) -> Option<Error> {
    let (_, rest) = text.rsplit_once(MARKS[0])?;
    let (digits, _) = rest.split_once(MARKS[1])?;
    let pairs = digits.as_bytes().chunks(2);
    let bytes = pairs.map(|pair| {
        let pair = std::str::from_utf8(pair).ok()?;
        u8::from_str_radix(pair, 16).ok()
    });
    let text = String::from_utf8(bytes.collect::<Option<_>>()?).ok()?;
    let parts: Vec<&str> = text.split(SEPARATOR).collect();
    of_parts(&parts)
}

fn parts(error: &Error) -> Vec<String> {
    let of = |parts: &[&str]| parts.iter().map(|part| (*part).to_string()).collect();
    match error {
        Error::Io { path, message } => of(&["io", path, message]),
        Error::Format {
            path,
            line,
            message,
        } => {
            let line = line.map_or_else(String::new, |line| line.to_string());
            of(&["format", path, &line, message])
        }
        Error::OutOfMemory(out) => {
            let figures = [
                out.asked_bytes,
                out.held_bytes,
                out.used_bytes,
                out.limit_bytes,
            ];
            let mut parts = vec!["memory".to_string(), out.operator.clone()];
            parts.extend(figures.map(|bytes| bytes.to_string()));
            parts
        }
        Error::Overflow { aggregate, message } => of(&["overflow", aggregate, message]),
        Error::DivideByZero => of(&["zero"]),
        Error::Cancelled => of(&["cancelled"]),
        Error::Unsupported { message } => of(&["unsupported", message]),
        Error::Type { message, .. } => of(&["type", message]),
        Error::Invalid { name, message } => of(&["invalid", name, message]),
        Error::Internal(message) => of(&["internal", message]),
        other => of(&["execution", &other.to_string()]),
    }
}

fn of_parts(parts: &[&str]) -> Option<Error> {
    let text = |text: &&str| (*text).to_string();
    Some(match parts {
        ["io", path, message] => Error::Io {
            path: text(path),
            message: text(message),
        },
        ["format", path, line, message] => Error::Format {
            path: text(path),
            line: line.parse().ok(),
            message: text(message),
        },
        ["memory", operator, asked, held, used, limit] => Error::OutOfMemory(OutOfMemory {
            operator: text(operator),
            asked_bytes: asked.parse().ok()?,
            held_bytes: held.parse().ok()?,
            used_bytes: used.parse().ok()?,
            limit_bytes: limit.parse().ok()?,
        }),
        ["overflow", aggregate, message] => Error::Overflow {
            aggregate: text(aggregate),
            message: text(message),
        },
        ["zero"] => Error::DivideByZero,
        ["cancelled"] => Error::Cancelled,
        ["unsupported", message] => Error::Unsupported {
            message: text(message),
        },
        ["type", message] => Error::Type {
            message: text(message),
            position: None,
        },
        ["invalid", name, message] => Error::Invalid {
            name: text(name),
            message: text(message),
        },
        ["internal", message] => Error::Internal(text(message)),
        ["execution", message] => Error::Execution(text(message)),
        _ => return None,
    })
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use ballista_core::serde::protobuf::{FailedTask, failed_task::FailedReason};
    use datafusion::arrow::error::ArrowError;
    use futures::FutureExt;

    use super::*;

    /// What Ballista makes of a task's error for the job.
    fn by_ballista(error: DataFusionError) -> FailedTask {
        let told = told(error, "node1:/work", std::future::ready).now_or_never();
        FailedTask::from(BallistaError::from(told.unwrap()))
    }

    #[test]
    fn errors_come_back_as_they_were() {
        let out = OutOfMemory {
            operator: "GroupByExec".to_string(),
            asked_bytes: 1,
            held_bytes: 2,
            used_bytes: 3,
            limit_bytes: 4,
        };
        let io = |path: &str| Error::Io {
            path: path.to_string(),
            message: "it's \"gone\"\nfor good ]".to_string(),
        };
        for error in [
            Error::OutOfMemory(out),
            Error::DivideByZero,
            io("/données/a.parquet"),
            Error::Execution("a ] b [grouse error".to_string()),
            Error::Format {
                path: "a".to_string(),
                line: None,
                message: "b".to_string(),
            },
        ] {
            let task = by_ballista(error.clone().into());
            let job = format!("Job failed: {:?}", task.error);
            assert_eq!(of_job(&job), error);
        }
        let other = of_job("no executors").to_string();
        assert!(other.contains("no executors"), "{other}");
    }

    #[test]
    fn errors_are_found_in_those_of_ballista() {
        let inner = DataFusionError::from(Error::DivideByZero);
        let around = BallistaError::DataFusionError(Box::new(inner)).into_datafusion();
        let task = by_ballista(DataFusionError::Shared(Arc::new(around)));
        assert_eq!(of_job(&task.error), Error::DivideByZero);
    }

    #[test]
    fn a_lost_input_is_seen_through_what_stands_around_it() {
        let lost = BallistaError::FetchFailed("e".to_string(), 1, 2, "gone".to_string());
        let shared = DataFusionError::Shared(Arc::new(lost.into_datafusion()));
        let task = by_ballista(DataFusionError::Context(
            "here".to_string(),
            Box::new(shared),
        ));
        assert!(matches!(
            task.failed_reason,
            Some(FailedReason::FetchPartitionError(_))
        ));
    }

    #[test]
    fn a_full_disk_is_that_of_the_executor() {
        use std::io::{Error as IoError, ErrorKind};
        let full = || IoError::from(ErrorKind::StorageFull);
        let written = DataFusionError::ArrowError(Box::new(full().into()), None);
        let streamed = BallistaError::IoError(full()).into_datafusion();
        let encoded = BallistaError::from(ArrowError::from(full())).into_datafusion();
        let system = IoError::from_raw_os_error(28);
        let spilled = BallistaError::ArrowError(Box::new(system.into()));
        for error in [
            DataFusionError::IoError(full()),
            written,
            DataFusionError::Shared(Arc::new(streamed)),
            encoded,
            DataFusionError::Execution(format!("{spilled:?}")),
        ] {
            let text = error.to_string();
            let task = by_ballista(error);
            assert!(task.retryable, "{text}");
            let told = of_job(&task.error).to_string();
            assert!(told.contains("node1:/work"), "{text}: {told}");
        }
        let other = by_ballista(DataFusionError::IoError(ErrorKind::NotFound.into()));
        assert!(!of_job(&other.error).to_string().contains("node1"));
    }

    #[test]
    fn only_what_may_pass_is_tried_again() {
        let unreachable = object_store::Error::Generic {
            store: "S3",
            source: "timed out".into(),
        };
        let task = by_ballista(DataFusionError::ObjectStore(Box::new(unreachable)));
        assert!(task.retryable);
        let missing = object_store::Error::NotFound {
            path: "a".to_string(),
            source: "no".into(),
        };
        let task = by_ballista(DataFusionError::ObjectStore(Box::new(missing)));
        assert!(!task.retryable);
    }
}
