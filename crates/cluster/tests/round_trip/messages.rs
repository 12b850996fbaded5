//! Messages: who is refused, and what another format ends in.
//!
//! In: nodes and messages. Out: errors that name what does not travel, and who planned.

use std::fmt;
use std::sync::Arc;

use arrow::datatypes::{DataType, Field, Schema};
use datafusion::common::Result;
use datafusion::common::tree_node::TreeNodeRecursion;
use datafusion::execution::{SendableRecordBatchStream, TaskContext};
use datafusion::logical_expr::{ColumnarValue, Volatility, create_udf};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::empty::EmptyExec;
use datafusion::physical_plan::{DisplayAs, DisplayFormatType, ExecutionPlan, PlanProperties};
use grouse::{Session, SessionOptions};
use grouse_cluster::{codec, encoded, functions};

/// A node that nobody knows.
#[derive(Debug)]
struct Unheard(Arc<dyn ExecutionPlan>);

impl DisplayAs for Unheard {
    fn fmt_as(&self, _: DisplayFormatType, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnheardExec")
    }
}

impl ExecutionPlan for Unheard {
    fn name(&self) -> &str {
        "UnheardExec"
    }

    fn properties(&self) -> &Arc<PlanProperties> {
        self.0.properties()
    }

    fn children(&self) -> Vec<&Arc<dyn ExecutionPlan>> {
        vec![&self.0]
    }

    fn apply_expressions(
        &self,
        _: &mut dyn FnMut(&Arc<dyn PhysicalExpr>) -> Result<TreeNodeRecursion>,
    ) -> Result<TreeNodeRecursion> {
        Ok(TreeNodeRecursion::Continue)
    }

    fn replace_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
        _: datafusion::physical_plan::execution_plan::ReplaceChildrenOptions,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Unheard(children.remove(0))))
    }

    fn with_new_children(
        self: Arc<Self>,
        mut children: Vec<Arc<dyn ExecutionPlan>>,
    ) -> Result<Arc<dyn ExecutionPlan>> {
        Ok(Arc::new(Unheard(children.remove(0))))
    }

    fn execute(
        &self,
        partition: usize,
        context: Arc<TaskContext>,
    ) -> Result<SendableRecordBatchStream> {
        self.0.execute(partition, context)
    }
}

fn empty() -> Arc<dyn ExecutionPlan> {
    let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
    Arc::new(EmptyExec::new(Arc::new(schema)))
}

#[test]
fn an_unknown_node_is_an_error_that_names_it() {
    let plan: Arc<dyn ExecutionPlan> = Arc::new(Unheard(empty()));
    let error = encoded(&plan, codec().as_ref()).expect_err("nobody knows it");
    assert!(
        error.to_string().contains("because of UnheardExec;"),
        "{error}"
    );
}

#[test]
fn an_unknown_function_is_an_error_that_names_it() {
    let same = Arc::new(|args: &[ColumnarValue]| Ok(args[0].clone()));
    let function = create_udf(
        "sqrt",
        vec![DataType::Float64],
        DataType::Float64,
        Volatility::Immutable,
        same,
    );
    let mut message = Vec::new();
    let error = codec().try_encode_udf(&function, &mut message);
    let error = error.expect_err("it is not the registered one");
    assert!(error.to_string().contains("the function sqrt"), "{error}");
}

#[test]
fn a_registered_function_is_known_by_its_name() {
    let codec = codec();
    for function in functions().scalar_functions().values() {
        let mut message = Vec::new();
        codec
            .try_encode_udf(function, &mut message)
            .expect(function.name());
        let known = codec
            .try_decode_udf(function.name(), &message)
            .expect(function.name());
        assert_eq!(known.as_ref(), function.as_ref());
    }
    for function in functions().aggregate_functions().values() {
        let mut message = Vec::new();
        codec
            .try_encode_udaf(function, &mut message)
            .expect(function.name());
        let known = codec
            .try_decode_udaf(function.name(), &message)
            .expect(function.name());
        assert_eq!(known.as_ref(), function.as_ref());
    }
}

#[test]
fn a_grouping_without_a_stage_is_refused() {
    let session = Session::new(SessionOptions::default()).expect("a session");
    let sql = "SELECT x, count(*) FROM (VALUES (1), (2)) AS v(x) GROUP BY x";
    let query = session
        .handle()
        .block_on(session.query(sql))
        .expect("a plan");
    let error = encoded(query.plan(), codec().as_ref()).expect_err("it has no stage");
    assert!(
        error.to_string().contains("GroupByExec without a stage"),
        "{error}"
    );
}

#[test]
fn another_format_says_who_planned() {
    let session = Session::new(SessionOptions::default()).expect("a session");
    let schema = Schema::new(vec![Field::new("x", DataType::Int64, true)]);
    let message = grouse_cluster::foreign_message(&schema, 7, "9.9.9").expect("a message");
    let context = session.context().task_ctx();
    let converter = datafusion_proto::physical_plan::DefaultPhysicalProtoConverter {};
    let node = codec()
        .try_decode(&message, &[], &context, &converter)
        .expect("a node");
    assert_eq!(node.schema().as_ref(), &schema);
    let error = node.execute(0, context).err().expect("it does not run");
    let text = error.to_string();
    assert!(
        text.contains("the query was planned by grouse 9.9.9"),
        "{text}"
    );
    let mut again = Vec::new();
    codec()
        .try_encode(node, &mut again, &converter)
        .expect("the same message");
    assert_eq!(again, message);
}
