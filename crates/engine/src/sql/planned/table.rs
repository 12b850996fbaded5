//! CREATE TABLE, CREATE VIEW, CREATE EXTERNAL TABLE.
//!
//! In: a definition. Out: nothing, or its first clause that DataFusion drops.
//! Invariant: as of the folder. A constraint that nobody checks is refused: DataFusion would believe it.
//! Not here: constraints that are checked, which constraints.rs has taken out before.

use datafusion::sql::parser::CreateExternalTable;
use datafusion::sql::sqlparser::ast::{
    CheckConstraint, ColumnDef, ColumnOption, ColumnOptionDef, CreateTable, CreateTableOptions,
    CreateView, DataType, HiveDistributionStyle, HiveFormat, TableConstraint, ViewColumnDef,
};

use super::{Absent, Checked, StatementWalk};

const SELECT_ADVICE: &str = "write CREATE TABLE … AS SELECT * FROM …";

impl StatementWalk<'_> {
    #[expect(
        clippy::too_many_lines,
        reason = "each field of the structure has a line"
    )]
    pub(super) fn create_table(&mut self, table: &CreateTable) -> Checked {
        let CreateTable {
            or_replace: _,
            temporary,
            external,
            dynamic,
            global,
            if_not_exists: _,
            transient,
            volatile,
            iceberg,
            snapshot,
            name,
            columns,
            constraints,
            hive_distribution,
            hive_formats,
            table_options,
            file_format,
            location,
            query,
            without_rowid,
            like,
            clone,
            version,
            comment,
            on_commit,
            on_cluster,
            primary_key,
            order_by,
            partition_by,
            cluster_by,
            clustered_by,
            inherits,
            partition_of,
            for_values,
            strict,
            copy_grants,
            enable_schema_evolution,
            change_tracking,
            data_retention_time_in_days,
            max_data_extension_time_in_days,
            default_ddl_collation,
            with_aggregation_policy,
            with_row_access_policy,
            with_storage_lifecycle_policy,
            with_tags,
            external_volume,
            base_location,
            catalog,
            catalog_sync,
            storage_serialization_policy,
            target_lag,
            warehouse,
            refresh_mode,
            initialize,
            require_user,
            diststyle,
            distkey,
            sortkey,
            backup,
        } = table;
        let kinds: [(&dyn Absent, &str); 9] = [
            (temporary, "TEMPORARY"),
            (external, "EXTERNAL"),
            (dynamic, "DYNAMIC"),
            (global, "GLOBAL or LOCAL"),
            (transient, "TRANSIENT"),
            (volatile, "VOLATILE"),
            (iceberg, "ICEBERG"),
            (snapshot, "SNAPSHOT"),
            (require_user, "REQUIRE USER"),
        ];
        self.none_of(&kinds, "tables of a session lie in memory; leave it out")?;
        self.name(name)?;
        self.columns(columns)?;
        self.each(constraints, Self::constraint_of_table)?;
        let sources: [(&dyn Absent, &str); 5] = [
            (like, "LIKE"),
            (clone, "CLONE"),
            (inherits, "INHERITS"),
            (partition_of, "PARTITION OF"),
            (for_values, "FOR VALUES"),
        ];
        self.none_of(&sources, SELECT_ADVICE)?;
        let places: [(&dyn Absent, &str); 8] = [
            (file_format, "STORED AS"),
            (location, "LOCATION"),
            (external_volume, "EXTERNAL_VOLUME"),
            (base_location, "BASE_LOCATION"),
            (catalog, "CATALOG"),
            (catalog_sync, "CATALOG_SYNC"),
            (storage_serialization_policy, "STORAGE_SERIALIZATION_POLICY"),
            (backup, "BACKUP"),
        ];
        self.none_of(
            &places,
            "write CREATE EXTERNAL TABLE … LOCATION, or read the file in FROM",
        )?;
        self.hive(hive_distribution, hive_formats)?;
        let orders: [(&dyn Absent, &str); 10] = [
            (order_by, "ORDER BY"),
            (partition_by, "PARTITION BY"),
            (cluster_by, "CLUSTER BY"),
            (clustered_by, "CLUSTERED BY"),
            (diststyle, "DISTSTYLE"),
            (distkey, "DISTKEY"),
            (sortkey, "SORTKEY"),
            (on_cluster, "ON CLUSTER"),
            (primary_key, "PRIMARY KEY"),
            (without_rowid, "WITHOUT ROWID"),
        ];
        self.none_of(
            &orders,
            "tables of a session lie in memory as they come; leave it out",
        )?;
        let policies: [(&dyn Absent, &str); 17] = [
            (version, "a version of a table"),
            (comment, "COMMENT"),
            (on_commit, "ON COMMIT"),
            (strict, "STRICT"),
            (copy_grants, "COPY GRANTS"),
            (enable_schema_evolution, "ENABLE_SCHEMA_EVOLUTION"),
            (change_tracking, "CHANGE_TRACKING"),
            (data_retention_time_in_days, "DATA_RETENTION_TIME_IN_DAYS"),
            (
                max_data_extension_time_in_days,
                "MAX_DATA_EXTENSION_TIME_IN_DAYS",
            ),
            (default_ddl_collation, "DEFAULT_DDL_COLLATION"),
            (with_aggregation_policy, "WITH AGGREGATION POLICY"),
            (with_row_access_policy, "WITH ROW ACCESS POLICY"),
            (
                with_storage_lifecycle_policy,
                "WITH STORAGE LIFECYCLE POLICY",
            ),
            (with_tags, "WITH TAG"),
            (target_lag, "TARGET_LAG"),
            (warehouse, "WAREHOUSE"),
            (refresh_mode, "REFRESH_MODE"),
        ];
        self.none_of(&policies, "leave it out")?;
        self.absent(initialize, "INITIALIZE", "leave it out")?;
        self.options(table_options)?;
        self.maybe(query, |walk, query| {
            let checked = columns.iter().flat_map(|column| &column.options);
            let mut not_null = checked.map(|option| &option.option);
            if not_null.any(|option| matches!(option, ColumnOption::NotNull)) {
                return walk.refuse(
                    "NOT NULL",
                    "leave it out, or create the table before and insert the rows",
                );
            }
            walk.query(query)
        })
    }

    fn hive(
        &mut self,
        distribution: &HiveDistributionStyle,
        formats: &Option<HiveFormat>,
    ) -> Checked {
        if *distribution != HiveDistributionStyle::NONE {
            return self.refuse("PARTITIONED BY or SKEWED BY", "write COPY … PARTITIONED BY");
        }
        self.maybe(formats, |walk, formats| {
            let HiveFormat {
                row_format,
                serde_properties,
                storage,
                location,
            } = formats;
            let advice = "write CREATE EXTERNAL TABLE … LOCATION, or read the file in FROM";
            walk.absent(row_format, "ROW FORMAT", advice)?;
            walk.absent(serde_properties, "WITH SERDEPROPERTIES", advice)?;
            walk.absent(storage, "STORED AS", advice)?;
            walk.absent(location, "LOCATION", advice)
        })
    }

    fn options(&mut self, options: &CreateTableOptions) -> Checked {
        match options {
            CreateTableOptions::None => Ok(()),
            CreateTableOptions::With(_) => self.refuse("WITH", "tables have no options"),
            CreateTableOptions::Options(_) => self.refuse("OPTIONS", "tables have no options"),
            CreateTableOptions::Plain(_) => self.refuse("an option of a table", "tables have none"),
            CreateTableOptions::TableProperties(_) => {
                self.refuse("TBLPROPERTIES", "tables have no properties")
            }
        }
    }

    fn columns(&mut self, columns: &[ColumnDef]) -> Checked {
        self.each(columns, |walk, column| {
            let ColumnDef {
                name,
                data_type,
                options,
            } = column;
            walk.ident(name);
            // The parser takes LIKE for the name of a column, and the table for its type.
            let is_like = name.quote_style.is_none() && name.value.eq_ignore_ascii_case("LIKE");
            if is_like && matches!(data_type, DataType::Custom(..)) {
                return walk.refuse("LIKE", SELECT_ADVICE);
            }
            walk.data_type(data_type)?;
            walk.each(options, |walk, option| {
                let ColumnOptionDef { name: _, option } = option;
                walk.column_option(option)
            })
        })
    }

    fn column_option(&mut self, option: &ColumnOption) -> Checked {
        let clause = match option {
            ColumnOption::Null | ColumnOption::NotNull => return Ok(()),
            ColumnOption::Default(value) => return self.expr(value),
            ColumnOption::PrimaryKey(_) => "PRIMARY KEY",
            ColumnOption::Unique(_) => "UNIQUE",
            ColumnOption::ForeignKey(_) => "REFERENCES",
            ColumnOption::Check(_) => "CHECK",
            ColumnOption::Materialized(_) => "MATERIALIZED",
            ColumnOption::Ephemeral(_) => "EPHEMERAL",
            ColumnOption::Alias(_) => "ALIAS",
            ColumnOption::DialectSpecific(_) => "an option of a column",
            ColumnOption::CharacterSet(_) => "CHARACTER SET",
            ColumnOption::Collation(_) => {
                return self.refuse(
                    "COLLATE of a column but C, POSIX and BINARY",
                    "write it where strings are compared: s COLLATE NOCASE = 'a', ORDER BY s COLLATE NOCASE",
                );
            }
            ColumnOption::Comment(_) => "COMMENT",
            ColumnOption::OnUpdate(_) => "ON UPDATE",
            ColumnOption::Generated { .. } => "a generated column",
            ColumnOption::Options(_) => "OPTIONS",
            ColumnOption::Identity(_) => "IDENTITY",
            ColumnOption::OnConflict(_) => "ON CONFLICT",
            ColumnOption::Policy(_) => "a policy of a column",
            ColumnOption::Tags(_) => "TAG",
            ColumnOption::Srid(_) => "SRID",
            ColumnOption::Invisible => "INVISIBLE",
        };
        self.refuse(
            clause,
            "columns have a type, a default and constraints that are checked",
        )
    }

    fn constraint_of_table(&mut self, constraint: &TableConstraint) -> Checked {
        let clause = match constraint {
            TableConstraint::Unique(_) => "UNIQUE",
            TableConstraint::PrimaryKey(_) => "PRIMARY KEY",
            TableConstraint::ForeignKey(_) => "FOREIGN KEY",
            TableConstraint::Check(CheckConstraint { .. }) => "CHECK",
            TableConstraint::Index(_) => "INDEX or KEY",
            TableConstraint::FulltextOrSpatial(_) => "FULLTEXT or SPATIAL",
            TableConstraint::PrimaryKeyUsingIndex(_) => "PRIMARY KEY USING INDEX",
            TableConstraint::UniqueUsingIndex(_) => "UNIQUE USING INDEX",
        };
        self.refuse(clause, "it would not be checked; leave it out")
    }

    pub(super) fn create_view(&mut self, view: &CreateView) -> Checked {
        let CreateView {
            or_alter,
            or_replace: _,
            materialized,
            secure,
            name,
            name_before_not_exists: _,
            columns,
            query,
            options,
            cluster_by,
            comment,
            with_no_schema_binding,
            if_not_exists,
            temporary,
            copy_grants,
            to,
            params,
        } = view;
        self.absent(or_alter, "OR ALTER", "write OR REPLACE")?;
        self.absent(materialized, "MATERIALIZED", "write CREATE TABLE … AS")?;
        let parts: [(&dyn Absent, &str); 9] = [
            (secure, "SECURE"),
            (temporary, "TEMPORARY"),
            (if_not_exists, "IF NOT EXISTS"),
            (cluster_by, "CLUSTER BY"),
            (comment, "COMMENT"),
            (with_no_schema_binding, "WITH NO SCHEMA BINDING"),
            (copy_grants, "COPY GRANTS"),
            (to, "TO"),
            (params, "parameters of MySQL's views"),
        ];
        self.none_of(&parts, "leave it out")?;
        self.name(name)?;
        self.each(columns, |walk, column| {
            let ViewColumnDef {
                name,
                data_type,
                options,
            } = column;
            walk.ident(name);
            walk.absent(
                data_type,
                "types of a view's columns",
                "write CAST in the query",
            )?;
            walk.absent(options, "options of a view's columns", "leave them out")
        })?;
        self.options(options)?;
        self.query(query)
    }

    pub(super) fn external_table(&mut self, table: &CreateExternalTable) -> Checked {
        let CreateExternalTable {
            name,
            columns,
            file_type: _,
            locations: _,
            table_partition_cols: _,
            order_exprs,
            if_not_exists: _,
            or_replace: _,
            temporary: _,
            unbounded: _,
            // Each is judged by the reader of its format.
            options: _,
            constraints,
        } = table;
        self.name(name)?;
        self.columns(columns)?;
        self.each(constraints, Self::constraint_of_table)?;
        self.each(order_exprs, |walk, keys| walk.order_keys(keys))
    }
}
