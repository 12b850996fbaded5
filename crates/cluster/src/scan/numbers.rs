//! Numbers on their way: ranges in the form of a scan of files, which a scheduler deals out.
//!
//! In: a node that counts up; a scan that has been one. Out: the other.
//! Invariant: a range is one partition, whichever of them a task gets.
//! Not here: how the node counts (the engine).

use std::ops::Range;
use std::sync::Arc;

use datafusion::common::{Result, internal_err};
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::source::DataSourceExec;
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_plan::ExecutionPlan;
use grouse::distribution;

use super::TravellingSource;

/// The kind of such scans.
const KIND: &str = "numbers";

/// The node as a scan that travels; `None` of one that does not count.
pub(super) fn travelling(node: &dyn ExecutionPlan) -> Option<Arc<dyn ExecutionPlan>> {
    let shares = distribution::numbers_of(node)?;
    let groups = shares.iter().map(|Range { start, end }| {
        let name = format!("{start}-{end}");
        FileGroup::new(vec![PartitionedFile::new(name, 0)])
    });
    let schema = TableSchema::from(node.schema());
    let source = TravellingSource::new(KIND, Vec::new(), schema, KIND);
    let scan = FileScanConfigBuilder::new(ObjectStoreUrl::local_filesystem(), Arc::new(source))
        .with_file_groups(groups.collect());
    Some(DataSourceExec::from_data_source(scan.build()))
}

/// The node that counts as such a scan says; `None` of a scan of files.
pub(super) fn counting(
    scan: &FileScanConfig,
    source: &TravellingSource,
) -> Result<Option<Arc<dyn ExecutionPlan>>> {
    if source.reading().0 != KIND {
        return Ok(None);
    }
    let ranges = scan.file_groups.iter().map(|group| match group.files() {
        [range] => share(range.object_meta.location.as_ref()),
        others => internal_err!("a partition of numbers has {} ranges", others.len()),
    });
    let shares = ranges.collect::<Result<Vec<_>>>()?;
    let schema = Arc::clone(source.schema().file_schema());
    Ok(Some(distribution::numbers(shares, schema)))
}

fn share(name: &str) -> Result<Range<u64>> {
    let ends = name.split_once('-');
    let ends = ends.map(|(start, end)| (start.parse(), end.parse()));
    match ends {
        Some((Ok(start), Ok(end))) if start <= end => Ok(start..end),
        _ => internal_err!("{name} is no range of numbers"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_have_names() {
        assert_eq!(share("0-0").unwrap(), 0..0);
        assert_eq!(share("7-18446744073709551615").unwrap(), 7..u64::MAX);
        for wrong in ["", "7", "8-7", "-1-3", "1-x"] {
            assert!(share(wrong).is_err(), "{wrong}");
        }
    }
}
