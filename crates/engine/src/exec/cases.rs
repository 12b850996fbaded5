//! A key that is a CASE of text literals, as codes of these.
//!
//! In: `CASE WHEN x < 18 THEN 'young' … ELSE 'old' END`. Out: the same conditions with the literals' places, as a dictionary of the
//! literals.
//! Invariant: all batches have one dictionary, in which each literal is once; without ELSE, or where a literal is NULL, the code is.
//! Not here: what becomes of codes (`grouse_groupby::keys`).

use std::hash::{Hash, Hasher};
use std::sync::Arc;

use datafusion::arrow::array::{ArrayRef, AsArray, DictionaryArray, StringArray};
use datafusion::arrow::datatypes::{DataType, Field, Int32Type};
use datafusion::common::{Result, ScalarValue};
use datafusion::logical_expr::{
    ColumnarValue, ScalarFunctionArgs, ScalarUDFImpl, Signature, Volatility,
};
use datafusion::physical_expr::PhysicalExpr;
use datafusion::physical_expr::expressions::{CaseExpr, Literal};

use crate::functions::applied;
use crate::shared::place_of;

/// The key as codes; `None` if it is none that has them.
pub(super) fn coded(key: &Arc<dyn PhysicalExpr>) -> Option<Arc<dyn PhysicalExpr>> {
    let case = key.downcast_ref::<CaseExpr>()?;
    let mut texts = Vec::new();
    let mut code = |result: &Arc<dyn PhysicalExpr>| {
        let literal = result.downcast_ref::<Literal>()?.value();
        let text = literal.try_as_str()?.map(str::to_owned);
        let place = text.map(|text| place_of(&mut texts, &text) as i32);
        Some(Arc::new(Literal::new(ScalarValue::Int32(place))) as Arc<dyn PhysicalExpr>)
    };
    let results = case.when_then_expr().iter();
    let results = results.map(|(when, then)| Some((Arc::clone(when), code(then)?)));
    let results = results.collect::<Option<Vec<_>>>()?;
    let otherwise = match case.else_expr() {
        Some(otherwise) => Some(code(otherwise)?),
        None => None,
    };
    let places = CaseExpr::try_new(case.expr().cloned(), results, otherwise).ok()?;
    let of = Coded {
        values: Arc::new(StringArray::from_iter_values(&texts)),
        texts,
        signature: Signature::any(1, Volatility::Immutable),
    };
    let field = Field::new("codes", of.data_type(), true);
    Some(applied(of, Arc::new(places), &Arc::new(field)))
}

/// Places of texts as a dictionary of these.
#[derive(Debug)]
struct Coded {
    texts: Vec<String>,
    values: ArrayRef,
    signature: Signature,
}

impl Coded {
    fn data_type(&self) -> DataType {
        DataType::Dictionary(Box::new(DataType::Int32), Box::new(DataType::Utf8))
    }
}

impl PartialEq for Coded {
    fn eq(&self, other: &Self) -> bool {
        self.texts == other.texts
    }
}

impl Eq for Coded {}

impl Hash for Coded {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.texts.hash(state);
    }
}

impl ScalarUDFImpl for Coded {
    fn name(&self) -> &str {
        "codes"
    }

    fn signature(&self) -> &Signature {
        &self.signature
    }

    fn return_type(&self, _types: &[DataType]) -> Result<DataType> {
        Ok(self.data_type())
    }

    fn invoke_with_args(&self, args: ScalarFunctionArgs) -> Result<ColumnarValue> {
        let places = args.args[0].clone().into_array(args.number_rows)?;
        let places = places.as_primitive::<Int32Type>().clone();
        let codes = DictionaryArray::try_new(places, Arc::clone(&self.values))?;
        Ok(ColumnarValue::Array(Arc::new(codes)))
    }
}
