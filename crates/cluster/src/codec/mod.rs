//! The codec: nodes, expressions, functions and scans of ours as messages beside Ballista's.
//!
//! In: parts of plans. Out: bytes, and the parts again.
//! Invariant: what has neither a message nor a name is an error that names it. A grouping without a stage is one. Nodes that
//! another format planned are read, and fail when they run; that is what a user can be told.
//! Not here: which plan travels (distribute.rs), what something is made of (the engine).
//!
//! | of ours | travels as |
//! |---|---|
//! | `GroupByExec` with a stage, `SkipExec`, `ForgetEquivalencesExec`, scans of files, `NumbersExec` as one | a message |
//! | functions that are registered, DataFusion's own | their name, if the registered one is the same; some with a time zone |
//! | functions and expressions that rules make | a message (tables of the engine's `distribution`) |
//! | `GroupByExec` without a stage, `ReadOnceExec`, `TurnRowsExec`, sequences | not: an error |
//! | `SelectingFilterExec`, `RecordingFilterExec`, `Specialised`, `DistinctValues` | not: made where a part runs |

mod foreign;
mod messages;
mod scans;
mod values;
mod zones;

use std::sync::{Arc, LazyLock};

use ballista_core::serde::BallistaPhysicalExtensionCodec;
use datafusion::arrow::datatypes::Schema;
use datafusion::common::{DataFusionError, Result, internal_err, not_impl_err};
use datafusion::datasource::source::DataSourceExec;
use datafusion::execution::session_state::SessionState;
use datafusion::execution::{FunctionRegistry, TaskContext};
use datafusion::logical_expr::{AggregateUDF, ScalarUDF, WindowUDF};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr_common::physical_expr::proto_decode::PhysicalExprDecodeCtx;
use datafusion::physical_expr_common::physical_expr::proto_encode::PhysicalExprEncodeCtx;
use datafusion::physical_plan::ExecutionPlan;
use datafusion::prelude::SessionContext;
use datafusion_proto::physical_plan::{
    PhysicalExtensionCodec, PhysicalPlanDecodeContext, PhysicalProtoConverterExtension,
};
use grouse::{Apart, distribution};
use prost::Message;

use crate::scan::{TravellingSource, scan_of};
use foreign::ForeignExec;
use messages::{Headed, Header, Thing};
use scans::{Decode, Encode};
use values::{Decoder, Encoder};
pub(crate) use zones::meet;

/// The number of the format of messages.
pub(crate) const FORMAT: u32 = 1;

/// The version of this program, for people.
pub(crate) const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What stands in the first byte of all that this codec writes.
const OURS: u8 = 1;
const BALLISTAS: u8 = 2;
const BY_NAME: u8 = 3;
const OF_DATAFUSION: u8 = 4;
const IN_ZONE: u8 = 5;

/// The kind of a scan.
const SCAN: &str = "scan";

/// All functions by their names.
static FUNCTIONS: LazyLock<Arc<SessionState>> =
    LazyLock::new(|| Arc::new(distribution::functions()));

/// DataFusion's own functions, which rules put in the places of ours of the same names.
static OF_DATAFUSIONS: LazyLock<SessionState> = LazyLock::new(|| SessionContext::new().state());

/// The codec of scheduler, executors and clients.
pub fn codec() -> Arc<dyn PhysicalExtensionCodec> {
    Arc::new(GrouseCodec::default())
}

/// All functions that travel by their names: for the registries of scheduler and executors.
pub fn functions() -> Arc<SessionState> {
    Arc::clone(&FUNCTIONS)
}

/// The message of a node that another format has planned, for tests.
#[doc(hidden)]
pub fn foreign_message(schema: &Schema, format: u32, version: &str) -> Result<Vec<u8>> {
    let thing = Thing {
        header: Some(Header {
            format,
            version: version.to_string(),
            schema: Some(schema.try_into()?),
            partitions: 1,
        }),
        ..Thing::default()
    };
    let mut message = Vec::new();
    put(&thing, &mut message);
    Ok(message)
}

/// Ours first, else Ballista's.
#[derive(Debug, Default)]
struct GrouseCodec {
    ballista: BallistaPhysicalExtensionCodec,
}

/// The header of a message that is not about a node.
fn header() -> Header {
    Header {
        format: FORMAT,
        version: VERSION.to_string(),
        schema: None,
        partitions: 0,
    }
}

/// The header of a node's message.
fn header_of(node: &dyn ExecutionPlan) -> Result<Header> {
    Ok(Header {
        schema: Some(node.schema().as_ref().try_into()?),
        partitions: node.properties().output_partitioning().partition_count() as u64,
        ..header()
    })
}

fn damaged(error: prost::DecodeError) -> DataFusionError {
    DataFusionError::Internal(format!("a message cannot be read: {error}"))
}

/// What another format planned.
fn foreign(version: &str) -> String {
    format!("this executor runs grouse {VERSION}, the query was planned by grouse {version}")
}

/// The header of a message of ours, whichever format the rest has.
fn header_in(bytes: &[u8]) -> Result<Header> {
    let headed = Headed::decode(bytes).map_err(damaged)?;
    match headed.header {
        Some(header) => Ok(header),
        None => internal_err!("a message has no header"),
    }
}

/// The message, if it has the format of this program.
fn thing(bytes: &[u8]) -> Result<Thing> {
    let header = header_in(bytes)?;
    match header.format {
        FORMAT => Thing::decode(bytes).map_err(damaged),
        _ => Err(DataFusionError::Plan(foreign(&header.version))),
    }
}

fn no_plan(_: &Arc<dyn ExecutionPlan>) -> Result<datafusion_proto::protobuf::PhysicalPlanNode> {
    internal_err!("a function has no plan in it")
}

impl GrouseCodec {
    /// Writes a function that has a message of its own.
    fn write(&self, apart: &Apart, buf: &mut Vec<u8>) -> Result<()> {
        let encoder = Encoder {
            codec: self,
            expression: &|_| internal_err!("a function has no expression in it"),
            plan: &no_plan,
        };
        let thing = Thing {
            header: Some(header()),
            kind: apart.kind.to_string(),
            values: encoder.all(&apart.values)?,
            scan: None,
        };
        put(&thing, buf);
        Ok(())
    }

    /// Reads a function that has one.
    fn read<F>(
        &self,
        bytes: &[u8],
        whole: fn(&str, Vec<grouse::WireValue>) -> Result<Arc<F>>,
    ) -> Result<Arc<F>> {
        let thing = thing(bytes)?;
        let decoder = Decoder {
            codec: self,
            expression: &|_, _| internal_err!("a function has no expression in it"),
            plan: &|_| internal_err!("a function has no plan in it"),
        };
        whole(&thing.kind, decoder.all(&thing.values)?)
    }

    fn thing_of(
        &self,
        node: &Arc<dyn ExecutionPlan>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Option<Thing>> {
        let encoder = Encoder {
            codec: self,
            expression: &|expression| converter.physical_expr_to_proto(expression, self),
            plan: &|plan| converter.execution_plan_to_proto(plan, self),
        };
        if let Some(scan) = scan_of(node.as_ref()) {
            let Some(source) = scan.file_source().downcast_ref::<TravellingSource>() else {
                return not_impl_err!("a scan of {} files", scan.file_source().file_type());
            };
            let (kind, values) = source.reading();
            let encode = Encode {
                codec: self,
                converter,
            };
            let mut all = encoder.all(values)?;
            let kind = reading_kind(kind);
            all.insert(0, kind);
            return Ok(Some(Thing {
                header: Some(header_of(node.as_ref())?),
                kind: SCAN.to_string(),
                values: all,
                scan: Some(encode.scan(scan, source)?),
            }));
        }
        let Some(apart) = distribution::node_apart(node.as_ref()).transpose()? else {
            return Ok(None);
        };
        Ok(Some(Thing {
            header: Some(header_of(node.as_ref())?),
            kind: apart.kind.to_string(),
            values: encoder.all(&apart.values)?,
            scan: None,
        }))
    }

    fn node_of(
        &self,
        thing: &Thing,
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &PhysicalPlanDecodeContext<'_>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let decoder = Decoder {
            codec: self,
            expression: &|of, schema| converter.proto_to_physical_expr(of, schema, context),
            plan: &|plan| converter.proto_to_execution_plan(plan, context),
        };
        let mut values = decoder.all(&thing.values)?;
        let Some(scan) = &thing.scan else {
            return distribution::node_of(&thing.kind, inputs.to_vec(), values);
        };
        if values.is_empty() {
            return internal_err!("the message of a scan does not say how its files are read");
        }
        let kind = match values.remove(0) {
            grouse::WireValue::Text(kind) => kind,
            other => return internal_err!("{other:?} is no kind of a scan"),
        };
        let decode = Decode { context, converter };
        let scan = decode.scan(scan, &kind, values)?;
        Ok(DataSourceExec::from_data_source(scan))
    }
}

/// The kind of a scan's source, as the first of its values.
fn reading_kind(kind: &str) -> messages::Value {
    messages::Value {
        of: Some(messages::Of::Text(kind.to_string())),
    }
}

fn put(thing: &Thing, buf: &mut Vec<u8>) {
    buf.push(OURS);
    buf.extend_from_slice(&thing.encode_to_vec());
}

impl PhysicalExtensionCodec for GrouseCodec {
    fn try_encode(
        &self,
        node: Arc<dyn ExecutionPlan>,
        buf: &mut Vec<u8>,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<()> {
        if let Some(foreign) = node.downcast_ref::<ForeignExec>() {
            buf.push(OURS);
            buf.extend_from_slice(foreign.message());
            return Ok(());
        }
        if let Some(thing) = self.thing_of(&node, converter)? {
            put(&thing, buf);
            return Ok(());
        }
        let name = node.name().to_string();
        let mut message = Vec::new();
        match self.ballista.try_encode(node, &mut message, converter) {
            Ok(()) => {
                buf.push(BALLISTAS);
                buf.extend_from_slice(&message);
                Ok(())
            }
            Err(_) => not_impl_err!("{name}"),
        }
    }

    fn try_decode(
        &self,
        buf: &[u8],
        inputs: &[Arc<dyn ExecutionPlan>],
        context: &TaskContext,
        converter: &dyn PhysicalProtoConverterExtension,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        let bytes = match buf.split_first() {
            Some((&OURS, bytes)) => bytes,
            Some((&BALLISTAS, bytes)) => {
                return self.ballista.try_decode(bytes, inputs, context, converter);
            }
            _ => return internal_err!("a message of a node is of nobody that is known here"),
        };
        let header = header_in(bytes)?;
        if header.format != FORMAT {
            let node = ForeignExec::new(&header, bytes.to_vec(), inputs.to_vec())?;
            return Ok(Arc::new(node));
        }
        let thing = Thing::decode(bytes).map_err(damaged)?;
        let context = PhysicalPlanDecodeContext::new(context, self);
        self.node_of(&thing, inputs, &context, converter)
    }

    fn try_encode_expr(
        &self,
        node: &Arc<dyn PhysicalExpr>,
        buf: &mut Vec<u8>,
        context: &PhysicalExprEncodeCtx<'_>,
    ) -> Result<()> {
        let Some(apart) = distribution::expression_apart(node.as_ref()) else {
            return not_impl_err!("the expression {node}");
        };
        let encoder = Encoder {
            codec: self,
            expression: &|expression| context.encode_child(expression),
            plan: &no_plan,
        };
        let thing = Thing {
            header: Some(header()),
            kind: apart.kind.to_string(),
            values: encoder.all(&apart.values)?,
            scan: None,
        };
        put(&thing, buf);
        Ok(())
    }

    fn try_decode_expr(
        &self,
        buf: &[u8],
        parts: &[Arc<dyn PhysicalExpr>],
        context: &PhysicalExprDecodeCtx<'_>,
    ) -> Result<Arc<dyn PhysicalExpr>> {
        let Some((&OURS, bytes)) = buf.split_first() else {
            return internal_err!("a message of an expression is of nobody that is known here");
        };
        let thing = thing(bytes)?;
        let decoder = Decoder {
            codec: self,
            expression: &|of, _| context.decode(of),
            plan: &|_| internal_err!("an expression has no plan in it"),
        };
        let values = decoder.all(&thing.values)?;
        distribution::expression_of(&thing.kind, parts.to_vec(), values)
    }

    fn try_encode_udf(&self, node: &ScalarUDF, buf: &mut Vec<u8>) -> Result<()> {
        if let Some(apart) = distribution::function_apart(node) {
            return self.write(&apart, buf);
        }
        if let Some(zone) = zones::zone_of(node) {
            buf.push(IN_ZONE);
            buf.extend_from_slice(zone.as_bytes());
            return Ok(());
        }
        let is_of = |state: &SessionState| {
            let known = state.udf(node.name());
            known.is_ok_and(|known| *known == *node)
        };
        named(&is_of, node.name(), buf)
    }

    fn try_decode_udf(&self, name: &str, buf: &[u8]) -> Result<Arc<ScalarUDF>> {
        match buf.split_first() {
            Some((&OURS, bytes)) => self.read(bytes, distribution::function_of),
            Some((&OF_DATAFUSION, _)) => OF_DATAFUSIONS.udf(name),
            Some((&IN_ZONE, zone)) => zones::in_zone(name, zone),
            _ => FUNCTIONS.udf(name),
        }
    }

    fn try_encode_udaf(&self, node: &AggregateUDF, buf: &mut Vec<u8>) -> Result<()> {
        if let Some(apart) = distribution::aggregate_apart(node) {
            return self.write(&apart, buf);
        }
        let is_of = |state: &SessionState| {
            let known = state.udaf(node.name());
            known.is_ok_and(|known| *known == *node)
        };
        named(&is_of, node.name(), buf)
    }

    fn try_decode_udaf(&self, name: &str, buf: &[u8]) -> Result<Arc<AggregateUDF>> {
        match buf.split_first() {
            Some((&OURS, bytes)) => self.read(bytes, distribution::aggregate_of),
            Some((&OF_DATAFUSION, _)) => OF_DATAFUSIONS.udaf(name),
            _ => FUNCTIONS.udaf(name),
        }
    }

    fn try_encode_udwf(&self, node: &WindowUDF, buf: &mut Vec<u8>) -> Result<()> {
        if let Some(apart) = distribution::window_apart(node) {
            return self.write(&apart, buf);
        }
        let is_of = |state: &SessionState| {
            let known = state.udwf(node.name());
            known.is_ok_and(|known| *known == *node)
        };
        named(&is_of, node.name(), buf)
    }

    fn try_decode_udwf(&self, name: &str, buf: &[u8]) -> Result<Arc<WindowUDF>> {
        match buf.split_first() {
            Some((&OURS, bytes)) => self.read(bytes, distribution::window_of),
            Some((&OF_DATAFUSION, _)) => OF_DATAFUSIONS.udwf(name),
            _ => FUNCTIONS.udwf(name),
        }
    }
}

/// Writes a function that its name is enough for: with a definition it is read here, and nowhere else.
fn named(is_of: &dyn Fn(&SessionState) -> bool, name: &str, buf: &mut Vec<u8>) -> Result<()> {
    if is_of(&FUNCTIONS) {
        buf.push(BY_NAME);
    } else if is_of(&OF_DATAFUSIONS) {
        buf.push(OF_DATAFUSION);
    } else {
        return not_impl_err!("the function {name}");
    }
    Ok(())
}
