//! Scans that ask the condition cache which rows they need not read, and tell it what their filters leave.
//!
//! In: a scan in the making, with the filter directly above it; then the finished plan. Out: rows of each row group that may
//! match; a plan whose scans and filters record.
//! Invariant: a row is only left out if no row of its range can meet all conditions. Rows that bounds or the cache leave out do
//! not meet them either, so a row group counts as seen when all others were.
//! Not here: the cache and what counts as seen (scan/parquet/condition_cache.rs, scan/parquet/recording.rs), pieces (morsels.rs).

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::SystemTime;

use datafusion::common::Result;
use datafusion::common::config::ConfigOptions;
use datafusion::common::tree_node::{Transformed, TransformedResult, TreeNode};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::parquet::{ParquetAccessPlan, RowGroupAccess};
use datafusion::datasource::physical_plan::{FileScanConfig, ParquetSource};
use datafusion::datasource::source::DataSourceExec;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::physical_plan::filter::FilterExec;
use object_store::local::LocalFileSystem;
use object_store::path::Path;

use super::conditions::ScanConditions;
use super::morsels::{MorselFile, ranges, whole};
use crate::exec::{RecordingFilterExec, SelectingFilterExec};
use crate::runtime::options::SessionOptions;
use crate::scan::parquet::condition_cache::{ConditionCache, FileVersion, KnownGroups};
use crate::scan::parquet::recording::{
    Learning, RecordedFile, RecordedGroup, RecordedPiece, RecordedSource, ScanRecording, Skipped,
};

/// What the cache is asked for a scan.
pub(super) struct Question {
    conditions: ScanConditions,
    cache: &'static ConditionCache,
    /// Of local files.
    paths: Option<LocalFileSystem>,
    /// Where others are.
    place: String,
    now: SystemTime,
}

/// What it answers for a file.
pub(super) struct Answer {
    version: FileVersion,
    path: Option<PathBuf>,
    pub known: KnownGroups,
}

impl Question {
    /// That of a scan below `filter`; none if there is nothing to ask. `is_local`: files are this machine's own.
    pub fn of(
        filter: &FilterExec,
        (config, source): (&FileScanConfig, &ParquetSource),
        is_local: bool,
        options: &SessionOptions,
    ) -> Option<Question> {
        let url = config.object_store_url.as_str();
        if !options.condition_cache || url.starts_with("file:") && !is_local {
            return None;
        }
        let endpoint = options.s3_endpoint.as_deref().unwrap_or_default();
        Some(Question {
            conditions: ScanConditions::of(filter, config, source)?,
            cache: ConditionCache::of_process(),
            paths: is_local.then(LocalFileSystem::new),
            place: format!("{endpoint}\0{url}"),
            now: SystemTime::now(),
        })
    }

    /// None for a file without a version.
    pub fn answer(&self, file: &PartitionedFile) -> Option<Answer> {
        let object = &file.object_meta;
        let (version, path) = match &self.paths {
            Some(paths) => {
                let path = paths.path_to_filesystem(&object.location).ok()?;
                (FileVersion::of_local(&path, object, self.now)?, Some(path))
            }
            None => (FileVersion::of_remote(self.place.clone(), object)?, None),
        };
        Some(Answer {
            known: self.cache.known(&version, &self.conditions.all),
            version,
            path,
        })
    }

    /// What there is to learn from a scan of these files.
    fn learning(&self, files: &[MorselFile], is_late: bool) -> Learning {
        let is_new = |file: &MorselFile| {
            let answer = file.answer.as_ref();
            let groups = file.groups.iter().enumerate();
            let mut read = groups.filter(|(_, group)| !group.wanted.is_empty());
            answer.is_some_and(|of| read.any(|(at, _)| !of.known.is_own(at)))
        };
        match self.conditions.are_all && files.iter().any(is_new) {
            false => Learning::Nothing,
            true if is_late => Learning::FromFewer,
            true => Learning::FromAll,
        }
    }

    /// The pieces of the files with what the scan is to record of them.
    pub fn recorded(
        &self,
        files: &[MorselFile],
        pieces: Vec<PartitionedFile>,
        is_late: bool,
    ) -> Vec<PartitionedFile> {
        let skipped = Skipped {
            rows: files.iter().map(|file| file.skipped.rows).sum(),
            row_groups: files.iter().map(|file| file.skipped.row_groups).sum(),
        };
        let learning = self.learning(files, is_late);
        if skipped.rows == 0 && learning == Learning::Nothing {
            return pieces;
        }
        // Figures need a piece that they stand beside.
        let pieces = match (pieces.is_empty(), files.first()) {
            (true, Some(file)) => vec![nothing_of(file)],
            _ => pieces,
        };
        let answered = files
            .iter()
            .filter_map(|file| Some((file, file.answer.as_ref()?)));
        let answered: Vec<_> = answered.collect();
        let recorded = answered.iter().map(|(file, answer)| {
            let groups = file.groups.iter();
            let groups = groups.map(|group| RecordedGroup::new(group.rows, group.wanted_rows()));
            let (version, path) = (answer.version.clone(), answer.path.clone());
            RecordedFile::new(version, path, groups.collect())
        });
        let recorded = recorded.collect();
        let places = answered.iter().enumerate();
        let places = places.map(|(at, (file, _))| (file.location(), at));
        let places: HashMap<&Path, usize> = places.collect();
        let mut noted = Vec::with_capacity(pieces.len());
        let of_pieces = pieces.iter().map(|piece| {
            let at = *places.get(&piece.object_meta.location)?;
            let parts = parts(piece, answered[at].0);
            noted.push(RecordedPiece::new(at, parts));
            Some(noted.len() - 1)
        });
        let of_pieces: Vec<Option<usize>> = of_pieces.collect();
        let told = (Arc::clone(&self.conditions.all), learning);
        let recording = ScanRecording::new(self.cache, told, recorded, noted, skipped);
        let recording = Arc::new(recording);
        let pieces = pieces.into_iter().zip(of_pieces);
        let pieces = pieces.map(|(piece, at)| match at {
            Some(at) => recording.noted(piece, at),
            None => piece,
        });
        pieces.collect()
    }
}

/// A piece without a row.
fn nothing_of(file: &MorselFile) -> PartitionedFile {
    let none = ParquetAccessPlan::new_none(file.groups.len());
    file.file.clone().with_extension(none)
}

/// What a piece has of each row group.
fn parts(piece: &PartitionedFile, file: &MorselFile) -> Vec<(usize, Vec<std::ops::Range<usize>>)> {
    let plan = piece.extension::<ParquetAccessPlan>();
    let groups = plan.into_iter().flat_map(ParquetAccessPlan::inner);
    let groups = groups.zip(&file.groups).enumerate();
    let taken = groups.filter_map(|(at, (access, group))| match access {
        RowGroupAccess::Skip => None,
        RowGroupAccess::Scan => Some((at, whole(group.rows))),
        RowGroupAccess::Selection(selection) => Some((at, ranges(selection))),
    });
    taken.collect()
}

/// Makes scans and filters record, after all rules that look for DataFusion's.
pub(crate) fn optimize(
    plan: Arc<dyn ExecutionPlan>,
    _: &ConfigOptions,
) -> Result<Arc<dyn ExecutionPlan>> {
    plan.transform_up(|node| {
        if let Some(recording) = recording_of(&node) {
            return Ok(Transformed::yes(scan(&node, &recording)));
        }
        let below = node
            .children()
            .first()
            .and_then(|below| recording_of(below));
        let Some(recording) = below.filter(|recording| recording.learns()) else {
            return Ok(Transformed::no(node));
        };
        Ok(if let Some(filter) = node.downcast_ref::<FilterExec>() {
            Transformed::yes(Arc::new(RecordingFilterExec::new(filter, &recording)?))
        } else if let Some(filter) = node.downcast_ref::<SelectingFilterExec>() {
            Transformed::yes(Arc::new(filter.recorded(&recording)))
        } else {
            Transformed::no(node)
        })
    })
    .data()
}

/// What a scan records.
fn recording_of(node: &Arc<dyn ExecutionPlan>) -> Option<Arc<ScanRecording>> {
    let scan = node.downcast_ref::<DataSourceExec>()?;
    ScanRecording::of(scan.data_source().downcast_ref::<FileScanConfig>()?)
}

/// The scan with pieces that say which they are.
fn scan(node: &Arc<dyn ExecutionPlan>, recording: &ScanRecording) -> Arc<dyn ExecutionPlan> {
    let scan = node.downcast_ref::<DataSourceExec>();
    let config = scan.and_then(|scan| scan.data_source().downcast_ref::<FileScanConfig>());
    match config {
        Some(config) => {
            DataSourceExec::from_data_source(RecordedSource::replacing(config, recording))
        }
        None => Arc::clone(node),
    }
}
