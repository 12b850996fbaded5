//! What travels, as Protobuf messages.
//!
//! In: nothing. Out: the messages.
//! Invariant: `Header` is the same in all formats. A field that gets another meaning, or a value that is needed, is another format.
//! Not here: what they are made of (values.rs, scans.rs).

use datafusion_proto::protobuf;
use prost::{Message, Oneof};

/// Who planned, and what can be said of the node by who does not understand it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Header {
    #[prost(uint32, tag = "1")]
    pub format: u32,
    #[prost(string, tag = "2")]
    pub version: String,
    /// Columns of a node's rows.
    #[prost(message, optional, tag = "3")]
    pub schema: Option<protobuf::Schema>,
    #[prost(uint64, tag = "4")]
    pub partitions: u64,
}

/// A node, an expression or a function of ours.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Thing {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
    #[prost(string, tag = "2")]
    pub kind: String,
    #[prost(message, repeated, tag = "3")]
    pub values: Vec<Value>,
    /// Of a scan.
    #[prost(message, optional, tag = "4")]
    pub scan: Option<Scan>,
}

/// The header of a message, whatever else it has.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Headed {
    #[prost(message, optional, tag = "1")]
    pub header: Option<Header>,
}

/// One value.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Value {
    #[prost(oneof = "Of", tags = "1, 2, 3, 4, 6, 7, 8, 9, 10, 11, 12")]
    pub of: Option<Of>,
}

/// What a value is.
#[derive(Clone, PartialEq, Oneof)]
pub(super) enum Of {
    #[prost(bool, tag = "1")]
    Flag(bool),
    #[prost(sint64, tag = "2")]
    Number(i64),
    #[prost(string, tag = "3")]
    Text(String),
    #[prost(message, tag = "4")]
    Type(protobuf::ArrowType),
    #[prost(message, tag = "6")]
    Schema(protobuf::Schema),
    #[prost(message, tag = "7")]
    Function(Named),
    #[prost(message, tag = "8")]
    Aggregate(Named),
    #[prost(message, tag = "9")]
    Window(Named),
    #[prost(message, tag = "10")]
    Expression(Box<Over>),
    #[prost(message, tag = "11")]
    Plan(Box<protobuf::PhysicalPlanNode>),
    #[prost(message, tag = "12")]
    List(List),
}

/// A function: its name and what the codec says of it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Named {
    #[prost(string, tag = "1")]
    pub name: String,
    #[prost(bytes = "vec", tag = "2")]
    pub definition: Vec<u8>,
}

/// An expression over columns.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Over {
    #[prost(message, optional, tag = "1")]
    pub expression: Option<protobuf::PhysicalExprNode>,
    #[prost(message, optional, tag = "2")]
    pub schema: Option<protobuf::Schema>,
}

/// Several values.
#[derive(Clone, PartialEq, Message)]
pub(super) struct List {
    #[prost(message, repeated, tag = "1")]
    pub values: Vec<Value>,
}

/// A scan of files: DataFusion's message, and what that has no place for.
#[derive(Clone, PartialEq, Message)]
pub(super) struct Scan {
    /// Files, columns of files, orders, statistics, projection.
    #[prost(message, optional, tag = "1")]
    pub files: Option<protobuf::FileScanExecConf>,
    /// Columns that folders name.
    #[prost(message, optional, tag = "2")]
    pub folders: Option<protobuf::Schema>,
    /// In the order of the files of all groups.
    #[prost(message, repeated, tag = "3")]
    pub versions: Vec<FileVersion>,
    #[prost(uint64, optional, tag = "4")]
    pub limit: Option<u64>,
    #[prost(bool, tag = "5")]
    pub preserve_order: bool,
    #[prost(string, tag = "6")]
    pub compression: String,
    #[prost(message, optional, tag = "7")]
    pub predicate: Option<protobuf::PhysicalExprNode>,
    #[prost(string, tag = "8")]
    pub file_type: String,
}

/// Which version of a file planning has seen, and what it knows of it.
#[derive(Clone, PartialEq, Message)]
pub(super) struct FileVersion {
    #[prost(string, optional, tag = "1")]
    pub e_tag: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub version: Option<String>,
    #[prost(uint64, optional, tag = "3")]
    pub footer_bytes: Option<u64>,
    #[prost(message, repeated, tag = "4")]
    pub order: Vec<protobuf::PhysicalSortExprNode>,
}
