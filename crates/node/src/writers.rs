//! The writers of exchanges: what they may buffer, and what they have written.
//! In: the end of a stage's plan as the scheduler made it; the parts that a task has written. Out: the same within this machine's
//! memory; bytes on disk, and the disk without those of a task that failed.
//! Invariant: what a scheduler says of memory is not about this machine.
//! Not here: the writing (Ballista).

use std::collections::HashSet;
use std::fs;
use std::path::PathBuf;
use std::sync::Arc;

use ballista_core::JobId;
use ballista_core::execution_plans::{SortShuffleWriterExec, create_shuffle_path};
use ballista_core::serde::protobuf::ShuffleWritePartition;
use datafusion::common::Result;
use datafusion::physical_plan::ExecutionPlan;

/// The plan whose writer buffers at most so many bytes of each of its inputs, if it buffers.
pub fn within(plan: Arc<dyn ExecutionPlan>, bytes: usize) -> Result<Arc<dyn ExecutionPlan>> {
    let Some(writer) = plan.downcast_ref::<SortShuffleWriterExec>() else {
        return Ok(plan);
    };
    let config = writer.config().clone();
    Ok(Arc::new(SortShuffleWriterExec::try_new(
        writer.job_id().clone(),
        writer.stage_id(),
        Arc::clone(plan.children()[0]),
        String::new(),
        writer.shuffle_output_partitioning().clone(),
        config.with_memory_limit_per_task_bytes(bytes),
    )?))
}

/// Where a task writes.
#[derive(Debug)]
pub struct Place {
    pub work_dir: PathBuf,
    pub job_id: JobId,
    pub stage_id: usize,
    pub task_id: usize,
    /// Whether all parts share one file, in a folder of the task. Otherwise each has one, in a folder of the part.
    pub is_shared: bool,
}

impl Place {
    /// Bytes of these parts on disk. Of parts that share a file, Ballista counts what their rows were in memory.
    pub fn written(&self, parts: &[ShuffleWritePartition]) -> u64 {
        let (sharing, alone): (Vec<&ShuffleWritePartition>, Vec<&ShuffleWritePartition>) =
            parts.iter().partition(|of| of.is_sort_shuffle);
        let files = sharing.iter().map(|part| part.file_id);
        let files = files.collect::<HashSet<_>>().into_iter();
        let sizes = files.filter_map(|file| {
            let path =
                create_shuffle_path(&self.work_dir, &self.job_id, self.stage_id, 0, file, true);
            Some(fs::metadata(path.ok()?).ok()?.len())
        });
        sizes.chain(alone.iter().map(|part| part.num_bytes)).sum()
    }

    /// Removes what the task has written, which nobody reads once it has failed: another try needs the room.
    pub fn clear(&self) {
        let stage = self.work_dir.join(self.job_id.as_str());
        let stage = stage.join(self.stage_id.to_string());
        // Whatever is not there, or does not go, goes with the job.
        if self.is_shared {
            let _ = fs::remove_dir_all(stage.join(self.task_id.to_string()));
            return;
        }
        let name = format!("data-{}.arrow", self.task_id);
        for part in fs::read_dir(stage).into_iter().flatten().flatten() {
            let _ = fs::remove_file(part.path().join(&name));
        }
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;

    fn part(file: u64, is_sort_shuffle: bool, num_bytes: u64) -> ShuffleWritePartition {
        ShuffleWritePartition {
            num_bytes,
            file_id: Some(file),
            is_sort_shuffle,
            ..ShuffleWritePartition::default()
        }
    }

    fn place(work: &Path, is_shared: bool) -> Place {
        Place {
            work_dir: work.to_owned(),
            job_id: "job".into(),
            stage_id: 3,
            task_id: 7,
            is_shared,
        }
    }

    #[test]
    fn what_a_failed_task_has_written_goes_alone() {
        let files = [
            "7/data.arrow",
            "7/data-7.arrow",
            "8/data-7.arrow",
            "7/data-8.arrow",
        ];
        for (is_shared, stay) in [
            (true, &files[2..3]),
            (false, &["7/data.arrow", "7/data-8.arrow"][..]),
        ] {
            let work = tempfile::tempdir().unwrap();
            let stage = work.path().join("job").join("3");
            place(work.path(), is_shared).clear();
            for file in files {
                fs::create_dir_all(stage.join(file).parent().unwrap()).unwrap();
                fs::write(stage.join(file), "rows").unwrap();
            }
            place(work.path(), is_shared).clear();
            let left: Vec<&str> = files
                .into_iter()
                .filter(|file| stage.join(file).exists())
                .collect();
            assert_eq!(left, stay);
        }
    }

    #[test]
    fn a_file_of_several_parts_counts_once() {
        let work = tempfile::tempdir().unwrap();
        let place = place(work.path(), true);
        let folder = work.path().join("job").join("3").join("7");
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join("data.arrow"), [0; 100]).unwrap();
        let parts = [
            part(7, true, 4_000),
            part(7, true, 5_000),
            part(8, false, 30),
        ];
        assert_eq!(place.written(&parts), 130);
        assert_eq!(place.written(&[]), 0);
    }
}
