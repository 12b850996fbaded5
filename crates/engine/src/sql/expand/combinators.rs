//! ClickHouse's aggregates: `sumIf(x, c)`, `uniqExact(x)`, `quantile(0.9)(x)`, `groupArray(x)`, `anyLast(x)`.
//!
//! In: a call. Out: the same as SQL has it: the condition in FILTER, parameters behind the argument.
//! Invariant: NULLs are left out, as there; a sum of no row is NULL, as in SQL, and not 0. A macro of such a name stands for
//! itself: its body is in its place before.
//! Not here: `uniq`, `argMin` and `countIf(c)`, which are functions; parameters that no aggregate of ours has (planned/).

use datafusion::sql::sqlparser::ast::{
    Array, BinaryOperator, DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr,
    FunctionArgumentList, FunctionArguments, Ident,
};

use crate::sql::ast::{function_name, object, plain_arguments};
use crate::sql::expand::Catalog;

/// The ending of aggregates whose last argument is a condition.
const IF: &str = "if";

/// Puts the words of SQL in the place of those of ClickHouse.
pub(super) fn expand(expr: &mut Expr, catalog: &dyn Catalog) {
    let Expr::Function(function) = expr else {
        return;
    };
    let Some(name) = function_name(function) else {
        return;
    };
    let base = name.strip_suffix(IF).filter(|base| {
        let is_aggregate = standing(base).is_some() || catalog.is_aggregate(base);
        is_aggregate || has_parameters(function) && parametric(base).is_some()
    });
    let base = match base {
        Some(base) if move_condition(function) => base,
        _ => name.as_str(),
    };
    if let Some(own) = parametric(base).filter(|_| has_parameters(function)) {
        own.rename(function);
    } else if let Some(own) = standing(base) {
        own.rename(function);
    } else if base != name {
        function.name = object(Ident::new(base));
    }
}

/// What an aggregate is in SQL.
enum PlainAggregate {
    Name(&'static str),
    /// NULLs are left out.
    OfValues(&'static str),
    /// So are values that were there before.
    OfDistinctValues(&'static str),
}

fn standing(name: &str) -> Option<PlainAggregate> {
    use PlainAggregate::{Name, OfDistinctValues, OfValues};
    Some(match name {
        "any" => Name("any_value"),
        "anylast" => OfValues("last"),
        "uniqexact" => Name("uniq_exact"),
        "grouparray" => OfValues("list"),
        "groupuniqarray" => OfDistinctValues("list"),
        "groupbitand" => Name("bit_and"),
        "groupbitor" => Name("bit_or"),
        "groupbitxor" => Name("bit_xor"),
        "stddevpop" => Name("stddev_pop"),
        "stddevsamp" => Name("stddev_samp"),
        "varpop" => Name("var_pop"),
        "varsamp" => Name("var_samp"),
        "covarpop" => Name("covar_pop"),
        "covarsamp" => Name("covar_samp"),
        _ => return None,
    })
}

impl PlainAggregate {
    fn rename(&self, function: &mut Function) {
        let (PlainAggregate::Name(name)
        | PlainAggregate::OfValues(name)
        | PlainAggregate::OfDistinctValues(name)) = self;
        function.name = object(Ident::new(*name));
        if let PlainAggregate::Name(_) = self {
            return;
        }
        let arguments = plain_arguments(function);
        if let Some([argument]) = arguments.as_deref() {
            let is_value = Expr::IsNotNull(Box::new((*argument).clone()));
            and_filter(function, is_value);
        }
        if let (PlainAggregate::OfDistinctValues(_), FunctionArguments::List(list)) =
            (self, &mut function.args)
        {
            list.duplicate_treatment = Some(DuplicateTreatment::Distinct);
        }
    }
}

/// What an aggregate with parameters is in SQL.
enum Parametric {
    /// The parameter stands behind the argument.
    Behind(&'static str),
    /// All parameters stand there, as one list.
    ListBehind(&'static str),
}

fn parametric(name: &str) -> Option<Parametric> {
    Some(match name {
        "quantile" | "quantileexactinclusive" => Parametric::Behind("quantile_cont"),
        "quantiles" | "quantilesexactinclusive" => Parametric::ListBehind("quantile_cont"),
        "quantiletdigest" => Parametric::Behind("approx_quantile"),
        "topk" => Parametric::Behind("approx_top_k"),
        _ => return None,
    })
}

impl Parametric {
    fn rename(&self, function: &mut Function) {
        let FunctionArguments::List(parameters) = &function.parameters else {
            return;
        };
        let parameters = exprs(parameters);
        let (name, behind) = match (self, parameters.as_slice()) {
            (Parametric::Behind(name), [only]) => (name, only.clone()),
            (Parametric::ListBehind(name), [_, ..]) => {
                let list = Array {
                    elem: parameters,
                    named: false,
                };
                (name, Expr::Array(list))
            }
            _ => return,
        };
        let FunctionArguments::List(arguments) = &mut function.args else {
            return;
        };
        let behind = FunctionArg::Unnamed(FunctionArgExpr::Expr(behind));
        arguments.args.push(behind);
        function.name = object(Ident::new(*name));
        function.parameters = FunctionArguments::None;
    }
}

fn exprs(list: &FunctionArgumentList) -> Vec<Expr> {
    let exprs = list.args.iter().filter_map(|argument| match argument {
        FunctionArg::Unnamed(FunctionArgExpr::Expr(expr)) => Some(expr.clone()),
        _ => None,
    });
    exprs.collect()
}

fn has_parameters(function: &Function) -> bool {
    matches!(function.parameters, FunctionArguments::List(_))
}

/// Puts the last argument of several into FILTER; whether there was one.
fn move_condition(function: &mut Function) -> bool {
    let FunctionArguments::List(list) = &mut function.args else {
        return false;
    };
    if list.args.len() < 2 {
        return false;
    }
    let Some(FunctionArg::Unnamed(FunctionArgExpr::Expr(condition))) = list.args.last().cloned()
    else {
        return false;
    };
    list.args.pop();
    and_filter(function, condition);
    true
}

/// Adds a condition to FILTER.
fn and_filter(function: &mut Function, condition: Expr) {
    let nested = |expr: Box<Expr>| Box::new(Expr::Nested(expr));
    let condition = Box::new(condition);
    function.filter = Some(match function.filter.take() {
        None => condition,
        Some(own) => Box::new(Expr::BinaryOp {
            left: nested(own),
            op: BinaryOperator::And,
            right: nested(condition),
        }),
    });
}
