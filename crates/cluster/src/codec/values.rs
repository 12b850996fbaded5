//! Values of what is taken apart, as messages.
//!
//! In: values, or messages. Out: the other.
//! Invariant: every value has a message; a message without a value is an error.
//! Not here: which values something has (the engine).

use std::sync::Arc;

use datafusion::arrow::datatypes::{DataType, Schema};
use datafusion::common::{Result, internal_err};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_plan::ExecutionPlan;
use datafusion_proto::physical_plan::PhysicalExtensionCodec;
use datafusion_proto::protobuf::{PhysicalExprNode, PhysicalPlanNode};
use grouse::WireValue;

use super::messages::{List, Named, Of, Over, Value};

/// How expressions and plans within values become messages.
pub(super) struct Encoder<'a> {
    pub codec: &'a dyn PhysicalExtensionCodec,
    pub expression: &'a dyn Fn(&Arc<dyn PhysicalExpr>) -> Result<PhysicalExprNode>,
    pub plan: &'a dyn Fn(&Arc<dyn ExecutionPlan>) -> Result<PhysicalPlanNode>,
}

/// How they are made of messages again.
pub(super) struct Decoder<'a> {
    pub codec: &'a dyn PhysicalExtensionCodec,
    pub expression: &'a dyn Fn(&PhysicalExprNode, &Schema) -> Result<Arc<dyn PhysicalExpr>>,
    pub plan: &'a dyn Fn(&PhysicalPlanNode) -> Result<Arc<dyn ExecutionPlan>>,
}

impl Encoder<'_> {
    pub(super) fn all(&self, values: &[WireValue]) -> Result<Vec<Value>> {
        values.iter().map(|value| self.value(value)).collect()
    }

    fn value(&self, value: &WireValue) -> Result<Value> {
        let mut definition = Vec::new();
        let of = match value {
            WireValue::Flag(flag) => Of::Flag(*flag),
            WireValue::Number(number) => Of::Number(*number),
            WireValue::Text(text) => Of::Text(text.clone()),
            WireValue::Type(data_type) => Of::Type(data_type.try_into()?),
            WireValue::Schema(schema) => Of::Schema(schema.as_ref().try_into()?),
            WireValue::Function(function) => {
                self.codec.try_encode_udf(function, &mut definition)?;
                Of::Function(named(function.name(), definition))
            }
            WireValue::Aggregate(function) => {
                self.codec.try_encode_udaf(function, &mut definition)?;
                Of::Aggregate(named(function.name(), definition))
            }
            WireValue::Window(function) => {
                self.codec.try_encode_udwf(function, &mut definition)?;
                Of::Window(named(function.name(), definition))
            }
            WireValue::Expression(expression, schema) => Of::Expression(Box::new(Over {
                expression: Some((self.expression)(expression)?),
                schema: Some(schema.as_ref().try_into()?),
            })),
            WireValue::Plan(plan) => Of::Plan(Box::new((self.plan)(plan)?)),
            WireValue::List(values) => Of::List(List {
                values: self.all(values)?,
            }),
        };
        Ok(Value { of: Some(of) })
    }
}

impl Decoder<'_> {
    pub(super) fn all(&self, values: &[Value]) -> Result<Vec<WireValue>> {
        values.iter().map(|value| self.value(value)).collect()
    }

    fn value(&self, value: &Value) -> Result<WireValue> {
        let Some(of) = &value.of else {
            return internal_err!("a message has a value of a kind that is not known here");
        };
        Ok(match of {
            Of::Flag(flag) => WireValue::Flag(*flag),
            Of::Number(number) => WireValue::Number(*number),
            Of::Text(text) => WireValue::Text(text.clone()),
            Of::Type(data_type) => WireValue::Type(DataType::try_from(data_type)?),
            Of::Schema(schema) => WireValue::Schema(Arc::new(Schema::try_from(schema)?)),
            Of::Function(of) => {
                WireValue::Function(self.codec.try_decode_udf(&of.name, &of.definition)?)
            }
            Of::Aggregate(of) => {
                WireValue::Aggregate(self.codec.try_decode_udaf(&of.name, &of.definition)?)
            }
            Of::Window(of) => {
                WireValue::Window(self.codec.try_decode_udwf(&of.name, &of.definition)?)
            }
            Of::Expression(over) => {
                let (Some(expression), Some(schema)) = (&over.expression, &over.schema) else {
                    return internal_err!("a message has an expression without its columns");
                };
                let schema = Arc::new(Schema::try_from(schema)?);
                WireValue::Expression((self.expression)(expression, &schema)?, schema)
            }
            Of::Plan(plan) => WireValue::Plan((self.plan)(plan)?),
            Of::List(list) => WireValue::List(self.all(&list.values)?),
        })
    }
}

fn named(name: &str, definition: Vec<u8>) -> Named {
    let name = name.to_string();
    Named { name, definition }
}
