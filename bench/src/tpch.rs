//! The eight tables of TPC-H, their rows made by `tpchgen`.
//!
//! In: a table and a scale factor. Out: the table in the types of the specification.
//! Invariant: a row group is one part of the generator, about half a million rows.

use arrow::datatypes::SchemaRef;
use arrow::error::ArrowError;
use arrow::record_batch::RecordBatch;
use clap::ValueEnum;
use tpchgen::generators as rows;
use tpchgen_arrow as columns;

use crate::write::{Batches, Table, WriteError};

const ROW_GROUP_ROWS: f64 = 500_000.0;
const BATCH_ROWS: usize = 16_384;
/// Above this the part numbers of the generator no longer fit.
const SCALE_MAX: f64 = 100_000.0;

/// The tables of the specification.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum TpchTable {
    /// 6 M rows at scale 1
    Lineitem,
    /// 1.5 M rows
    Orders,
    /// 0.8 M rows
    Partsupp,
    /// 0.2 M rows
    Part,
    /// 150,000 rows
    Customer,
    /// 10,000 rows
    Supplier,
    /// 25 rows at any scale
    Nation,
    /// 5 rows at any scale
    Region,
}

impl TpchTable {
    /// Rows at scale 1; the generator itself decides how many there are.
    fn rows_at_scale_one(self) -> f64 {
        match self {
            Self::Lineitem => 6e6,
            Self::Orders => 1.5e6,
            Self::Partsupp => 8e5,
            Self::Part => 2e5,
            Self::Customer => 1.5e5,
            Self::Supplier => 1e4,
            // Do not grow with the scale: always one row group.
            Self::Nation | Self::Region => 0.0,
        }
    }
}

/// One table at one scale.
pub struct Tpch {
    table: TpchTable,
    scale: f64,
    parts: i32,
}

impl Tpch {
    /// Refuses a scale factor that the generator cannot serve.
    pub fn new(table: TpchTable, scale: f64) -> Result<Self, WriteError> {
        if !(scale > 0.0 && scale <= SCALE_MAX) {
            return Err(WriteError::Argument {
                option: "scale",
                value: scale.to_string(),
                range: "above 0 and at most 100000",
            });
        }
        let parts = (table.rows_at_scale_one() * scale / ROW_GROUP_ROWS).ceil();
        Ok(Self {
            table,
            scale,
            parts: (parts as i32).max(1),
        })
    }
}

type Rows = dyn Iterator<Item = Result<RecordBatch, ArrowError>>;

impl Table for Tpch {
    fn schema(&self) -> SchemaRef {
        match self.table {
            TpchTable::Lineitem => columns::LineItemArrow::schema_ref(),
            TpchTable::Orders => columns::OrderArrow::schema_ref(),
            TpchTable::Partsupp => columns::PartSuppArrow::schema_ref(),
            TpchTable::Part => columns::PartArrow::schema_ref(),
            TpchTable::Customer => columns::CustomerArrow::schema_ref(),
            TpchTable::Supplier => columns::SupplierArrow::schema_ref(),
            TpchTable::Nation => columns::NationArrow::schema_ref(),
            TpchTable::Region => columns::RegionArrow::schema_ref(),
        }
    }

    fn row_groups(&self) -> usize {
        self.parts as usize
    }

    fn batches(&self, row_group: usize) -> Batches<'_> {
        let (scale, part, of) = (self.scale, row_group as i32 + 1, self.parts);
        macro_rules! made_by {
            ($rows:ident, $columns:ident) => {
                Box::new(
                    columns::$columns::new(rows::$rows::new(scale, part, of))
                        .with_batch_size(BATCH_ROWS),
                ) as Box<Rows>
            };
        }
        match self.table {
            TpchTable::Lineitem => made_by!(LineItemGenerator, LineItemArrow),
            TpchTable::Orders => made_by!(OrderGenerator, OrderArrow),
            TpchTable::Partsupp => made_by!(PartSuppGenerator, PartSuppArrow),
            TpchTable::Part => made_by!(PartGenerator, PartArrow),
            TpchTable::Customer => made_by!(CustomerGenerator, CustomerArrow),
            TpchTable::Supplier => made_by!(SupplierGenerator, SupplierArrow),
            TpchTable::Nation => made_by!(NationGenerator, NationArrow),
            TpchTable::Region => made_by!(RegionGenerator, RegionArrow),
        }
    }
}
