//! Scans as messages.
//!
//! In: a scan with the source that travels, or its message. Out: the other.
//! Invariant: nothing of a scan is lost: DataFusion's own message forgets the compression, which version of a file planning has
//! seen, large limits, and whether an order is kept.
//! Not here: how the files of a format are read (the engine), the source that travels (scan.rs).

use std::sync::Arc;

use datafusion::arrow::datatypes::{Schema, SchemaRef};
use datafusion::common::parsers::CompressionTypeVariant;
use datafusion::common::{Result, internal_err, not_impl_err};
use datafusion::datasource::file_format::file_compression_type::FileCompressionType;
use datafusion::datasource::listing::PartitionedFile;
use datafusion::datasource::physical_plan::{FileGroup, FileScanConfig, FileScanConfigBuilder};
use datafusion::datasource::table_schema::TableSchema;
use datafusion::execution::object_store::ObjectStoreUrl;
use datafusion::physical_expr::projection::{ProjectionExpr, ProjectionExprs};
use datafusion::physical_expr::{LexOrdering, PhysicalExpr};
use datafusion_proto::physical_plan::from_proto::{
    parse_physical_sort_exprs, parse_protobuf_partitioning,
};
use datafusion_proto::physical_plan::to_proto::{
    serialize_partitioning, serialize_physical_sort_exprs,
};
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use datafusion_proto::protobuf;
use grouse::WireValue;

use super::messages::{FileVersion, Scan};
use crate::scan::TravellingSource;

/// What messages of expressions are made with.
pub(super) struct Encode<'a> {
    pub codec: &'a dyn PhysicalExtensionCodec,
    pub converter: &'a dyn PhysicalProtoConverterExtension,
}

/// What expressions are made of messages with.
pub(super) struct Decode<'a> {
    pub context: &'a PhysicalPlanDecodeContext<'a>,
    pub converter: &'a dyn PhysicalProtoConverterExtension,
}

impl Encode<'_> {
    fn expression(&self, of: &Arc<dyn PhysicalExpr>) -> Result<protobuf::PhysicalExprNode> {
        self.converter.physical_expr_to_proto(of, self.codec)
    }

    fn order(&self, order: &LexOrdering) -> Result<Vec<protobuf::PhysicalSortExprNode>> {
        let keys = order.iter().cloned();
        serialize_physical_sort_exprs(keys, self.codec, self.converter)
    }

    /// The message of a scan, but for how its files are read.
    pub(super) fn scan(&self, scan: &FileScanConfig, source: &TravellingSource) -> Result<Scan> {
        let schema = source.schema();
        if !schema.virtual_columns().is_empty() {
            return not_impl_err!("a scan with columns that are neither in files nor in folders");
        }
        let projection = source.columns().map(|columns| self.projection(columns));
        let partitioning = scan
            .output_partitioning
            .as_ref()
            .map(|partitioning| serialize_partitioning(partitioning, self.codec, self.converter));
        let orders = scan.output_ordering.iter().map(|order| {
            Ok(protobuf::PhysicalSortExprNodeCollection {
                physical_sort_expr_nodes: self.order(order)?,
            })
        });
        let groups = scan.file_groups.iter();
        let groups = groups.map(protobuf::FileGroup::try_from);
        let files = protobuf::FileScanExecConf {
            file_groups: groups.collect::<Result<_>>()?,
            statistics: Some((&scan.statistics()).into()),
            schema: Some(schema.file_schema().as_ref().try_into()?),
            object_store_url: scan.object_store_url.to_string(),
            output_ordering: orders.collect::<Result<_>>()?,
            constraints: Some(scan.constraints.clone().into()),
            batch_size: scan.batch_size.map(|rows| rows as u64),
            projection_exprs: projection.transpose()?,
            output_partitioning: partitioning.transpose()?,
            ..Default::default()
        };
        let folders = Schema::new(schema.table_partition_cols().clone());
        let versions = scan.file_groups.iter().flat_map(FileGroup::iter);
        let compression = CompressionTypeVariant::from(scan.file_compression_type);
        let predicate = source.predicate().map(|of| self.expression(of));
        Ok(Scan {
            files: Some(files),
            folders: Some((&folders).try_into()?),
            versions: versions
                .map(|file| self.version(file))
                .collect::<Result<_>>()?,
            limit: scan.limit.map(|rows| rows as u64),
            preserve_order: scan.preserve_order,
            compression: compression.to_string(),
            predicate: predicate.transpose()?,
            file_type: source.format().to_string(),
        })
    }

    fn projection(&self, columns: &ProjectionExprs) -> Result<protobuf::ProjectionExprs> {
        let columns = columns.iter().map(|column| {
            Ok(protobuf::ProjectionExpr {
                alias: column.alias.clone(),
                expr: Some(self.expression(&column.expr)?),
            })
        });
        Ok(protobuf::ProjectionExprs {
            projections: columns.collect::<Result<_>>()?,
        })
    }

    fn version(&self, file: &PartitionedFile) -> Result<FileVersion> {
        let order = file.ordering.as_ref().map(|order| self.order(order));
        Ok(FileVersion {
            e_tag: file.object_meta.e_tag.clone(),
            version: file.object_meta.version.clone(),
            footer_bytes: file.metadata_size_hint.map(|bytes| bytes as u64),
            order: order.transpose()?.unwrap_or_default(),
        })
    }
}

impl Decode<'_> {
    fn expression(
        &self,
        of: &protobuf::PhysicalExprNode,
        schema: &Schema,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        self.converter
            .proto_to_physical_expr(of, schema, self.context)
    }

    fn order(
        &self,
        keys: &[protobuf::PhysicalSortExprNode],
        schema: &Schema,
    ) -> Result<Option<LexOrdering>> {
        let keys = parse_physical_sort_exprs(keys, self.context, schema, self.converter)?;
        Ok(LexOrdering::new(keys))
    }

    /// The scan of a message, whose files are read as `kind` and `values` say.
    pub(super) fn scan(
        &self,
        message: &Scan,
        kind: &str,
        values: Vec<WireValue>,
    ) -> Result<FileScanConfig> {
        let (Some(files), Some(folders)) = (&message.files, &message.folders) else {
            return internal_err!("the message of a scan has no files");
        };
        let Some(schema) = &files.schema else {
            return internal_err!("the message of a scan has no columns");
        };
        let folders = Schema::try_from(folders)?;
        let schema = TableSchema::builder(Arc::new(Schema::try_from(schema)?))
            .with_table_partition_cols(folders.fields().to_vec())
            .build();
        let table = Arc::clone(schema.table_schema());
        let projection = files.projection_exprs.as_ref();
        let projection = projection.map(|columns| self.projection(columns, &table));
        let predicate = message.predicate.as_ref();
        let predicate = predicate.map(|of| self.expression(of, &table));
        let source = TravellingSource::new(kind, values, schema, &message.file_type)
            .with_columns(projection.transpose()?)
            .with_predicate(predicate.transpose()?);
        let orders = files.output_ordering.iter();
        let orders = orders.map(|order| self.order(&order.physical_sort_expr_nodes, &table));
        let orders = orders.collect::<Result<Vec<_>>>()?.into_iter().flatten();
        let partitioning = parse_protobuf_partitioning(
            files.output_partitioning.as_ref(),
            self.context,
            &table,
            self.converter,
        )?;
        let (Some(statistics), Some(constraints)) = (&files.statistics, &files.constraints) else {
            return internal_err!("the message of a scan has no statistics");
        };
        let url = ObjectStoreUrl::parse(&files.object_store_url)?;
        let scan = FileScanConfigBuilder::new(url, Arc::new(source))
            .with_file_groups(self.groups(files, &message.versions, &table)?)
            .with_constraints(constraints.try_into()?)
            .with_statistics(statistics.try_into()?)
            .with_limit(message.limit.map(|rows| rows as usize))
            .with_preserve_order(message.preserve_order)
            .with_output_ordering(orders.collect())
            .with_output_partitioning(partitioning)
            .with_batch_size(files.batch_size.map(|rows| rows as usize))
            .with_file_compression_type(message.compression.parse::<FileCompressionType>()?);
        Ok(scan.build())
    }

    fn projection(
        &self,
        columns: &protobuf::ProjectionExprs,
        table: &SchemaRef,
    ) -> Result<ProjectionExprs> {
        let columns = columns.projections.iter().map(|column| {
            let Some(expr) = &column.expr else {
                return internal_err!("a column of a scan has no expression");
            };
            let expr = self.expression(expr, table)?;
            Ok(ProjectionExpr::new(expr, column.alias.clone()))
        });
        Ok(ProjectionExprs::new(columns.collect::<Result<Vec<_>>>()?))
    }

    fn groups(
        &self,
        files: &protobuf::FileScanExecConf,
        versions: &[FileVersion],
        table: &SchemaRef,
    ) -> Result<Vec<FileGroup>> {
        let mut versions = versions.iter();
        let mut groups = Vec::with_capacity(files.file_groups.len());
        for group in &files.file_groups {
            let mut known = Vec::with_capacity(group.files.len());
            for file in &group.files {
                let mut file = PartitionedFile::try_from(file)?;
                let Some(version) = versions.next() else {
                    return internal_err!("a file of a scan has no version");
                };
                file.object_meta.e_tag = version.e_tag.clone();
                file.object_meta.version = version.version.clone();
                file.metadata_size_hint = version.footer_bytes.map(|bytes| bytes as usize);
                file.ordering = self.order(&version.order, table)?;
                known.push(file);
            }
            groups.push(FileGroup::new(known));
        }
        Ok(groups)
    }
}
