//! Calls of functions: FILTER, OVER, DISTINCT, ORDER BY, WITHIN GROUP, clauses among the arguments.
//!
//! In: a call. Out: nothing, or its first clause that DataFusion drops.
//! Invariant: as of the folder. A function that is no aggregate has none of an aggregate's clauses.
//! Not here: which arguments a function takes.

use datafusion::sql::sqlparser::ast::{
    DuplicateTreatment, Expr, Function, FunctionArg, FunctionArgExpr, FunctionArgumentClause,
    FunctionArgumentList, FunctionArguments, NullTreatment, ObjectName, WindowFrame,
    WindowFrameBound, WindowFrameUnits, WindowSpec, WindowType,
};

use super::{CalledKind, Checked, StatementWalk};

/// Window functions that take IGNORE NULLS.
const IGNORE_NULLS: &[&str] = &[
    "first_value",
    "last_value",
    "nth_value",
    "lead",
    "lag",
    "array_agg",
];

/// Window functions that find a value in a frame.
const OF_A_VALUE: &[&str] = &["first_value", "last_value", "nth_value"];

fn is_without_arguments(args: &FunctionArguments) -> bool {
    match args {
        FunctionArguments::None => true,
        FunctionArguments::List(list) => list.args.is_empty(),
        FunctionArguments::Subquery(_) => false,
    }
}

impl StatementWalk<'_> {
    pub(super) fn function(&mut self, function: &Function) -> Checked {
        let Function {
            name,
            uses_odbc_syntax: _,
            parameters,
            args,
            filter,
            null_treatment,
            over,
            within_group,
        } = function;
        self.name(name)?;
        let written = name.to_string();
        let kind = self.kind(&plain(name));
        if over.is_some() {
            self.value_of_a_frame(&written, &plain(name), args)?;
        }
        match parameters {
            FunctionArguments::None => {}
            FunctionArguments::Subquery(_) | FunctionArguments::List(_) => {
                let clause = format!("parameters in parentheses of their own after {written}");
                return self.refuse(clause, "write them among the arguments");
            }
        }
        match args {
            FunctionArguments::None => {}
            FunctionArguments::Subquery(_) => {
                let clause = format!("a query as the arguments of {written}");
                return self.refuse(clause, "put it into parentheses of its own");
            }
            FunctionArguments::List(list) => self.arguments(&written, kind, list)?,
        }
        let no_aggregate = kind == CalledKind::Scalar;
        if no_aggregate || (kind == CalledKind::Window) {
            self.absent(
                filter,
                &format!("FILTER of {written}, which is no aggregate"),
                "",
            )?;
            self.absent(
                within_group,
                &format!("WITHIN GROUP of {written}, which is no aggregate"),
                "",
            )?;
        }
        if no_aggregate {
            self.absent(
                over,
                &format!("OVER of {written}, which is neither an aggregate nor a window function"),
                "",
            )?;
            let clause = format!("IGNORE or RESPECT NULLS of {written}, which is no aggregate");
            self.absent(null_treatment, &clause, "")?;
        }
        if let Some(treatment) = null_treatment {
            self.nulls(function, *treatment)?;
        }
        self.order_keys(within_group)?;
        self.maybe(filter, |walk, filter| walk.expr(filter))?;
        self.maybe(over, |walk, over| match over {
            WindowType::WindowSpec(spec) => walk.window(spec),
            WindowType::NamedWindow(name) => {
                walk.ident(name);
                walk.refuse(
                    format!("window '{}', which WINDOW does not define", name.value),
                    "",
                )
            }
        })
    }

    /// DataFusion looks for the value of a frame in an argument that is not there.
    fn value_of_a_frame(&mut self, written: &str, name: &str, args: &FunctionArguments) -> Checked {
        match OF_A_VALUE.contains(&name) && is_without_arguments(args) {
            false => Ok(()),
            true => self.refuse(
                format!("{written} without an argument"),
                "write the value that is to be found",
            ),
        }
    }

    fn nulls(&mut self, function: &Function, treatment: NullTreatment) -> Checked {
        let name = plain(&function.name);
        let takes = function.over.is_none() || IGNORE_NULLS.contains(&name.as_str());
        match (takes, treatment) {
            (true, _) => Ok(()),
            (false, NullTreatment::IgnoreNulls) => {
                let clause = format!("IGNORE NULLS of {name}");
                self.refuse(
                    clause,
                    "only lead, lag, first_value, last_value, nth_value and array_agg take it",
                )
            }
            (false, NullTreatment::RespectNulls) => {
                let clause = format!("RESPECT NULLS of {name}");
                self.refuse(
                    clause,
                    "only lead, lag, first_value, last_value, nth_value and array_agg take it",
                )
            }
        }
    }

    fn arguments(
        &mut self,
        written: &str,
        kind: CalledKind,
        list: &FunctionArgumentList,
    ) -> Checked {
        let FunctionArgumentList {
            duplicate_treatment,
            args,
            clauses,
        } = list;
        match (duplicate_treatment, kind) {
            (Some(DuplicateTreatment::Distinct), CalledKind::Scalar | CalledKind::Window) => {
                let clause = format!("DISTINCT in {written}, which is no aggregate");
                return self.refuse(clause, "");
            }
            (Some(DuplicateTreatment::All), CalledKind::Scalar | CalledKind::Window) => {
                let clause = format!("ALL in {written}, which is no aggregate");
                return self.refuse(clause, "");
            }
            (Some(DuplicateTreatment::Distinct | DuplicateTreatment::All) | None, _) => {}
        }
        self.each(args, Self::argument)?;
        self.each(clauses, |walk, clause| {
            walk.argument_clause(written, kind, clause)
        })
    }

    fn argument_clause(
        &mut self,
        written: &str,
        kind: CalledKind,
        clause: &FunctionArgumentClause,
    ) -> Checked {
        match clause {
            FunctionArgumentClause::OrderBy(keys) => {
                if kind == CalledKind::Scalar {
                    let clause = format!("ORDER BY in {written}, which is no aggregate");
                    return self.refuse(clause, "");
                }
                self.order_keys(keys)
            }
            FunctionArgumentClause::IgnoreOrRespectNulls(_) => match kind {
                CalledKind::Scalar => {
                    let clause =
                        format!("IGNORE or RESPECT NULLS in {written}, which is no aggregate");
                    self.refuse(clause, "")
                }
                CalledKind::Aggregate | CalledKind::Window | CalledKind::Unknown => Ok(()),
            },
            FunctionArgumentClause::Limit(_) => {
                self.refuse(format!("LIMIT in {written}"), "take a part of its result")
            }
            FunctionArgumentClause::OnOverflow(_) => self.refuse(
                format!("ON OVERFLOW in {written}"),
                "results have no greatest length; leave it out",
            ),
            FunctionArgumentClause::Having(_) => self.refuse(
                format!("HAVING in {written}"),
                "write FILTER (WHERE …) after it",
            ),
            FunctionArgumentClause::Separator(_) => self.refuse(
                format!("SEPARATOR in {written}"),
                "write string_agg(x, ',')",
            ),
            FunctionArgumentClause::JsonNullClause(_) => {
                self.refuse(format!("NULL ON NULL or ABSENT ON NULL in {written}"), "")
            }
            FunctionArgumentClause::JsonReturningClause(_) => {
                self.refuse(format!("RETURNING in {written}"), "write CAST around it")
            }
        }
    }

    fn argument(&mut self, argument: &FunctionArg) -> Checked {
        match argument {
            FunctionArg::Named {
                name,
                arg,
                operator: _,
            } => {
                self.ident(name);
                self.argument_value(arg)
            }
            FunctionArg::ExprNamed {
                name,
                arg,
                operator: _,
            } => match name {
                Expr::Identifier(name) => {
                    self.ident(name);
                    self.argument_value(arg)
                }
                _ => self.refuse("an argument whose name is an expression", ""),
            },
            FunctionArg::Unnamed(arg) => self.argument_value(arg),
        }
    }

    fn argument_value(&mut self, argument: &FunctionArgExpr) -> Checked {
        match argument {
            FunctionArgExpr::Expr(expr) => self.expr(expr),
            FunctionArgExpr::QualifiedWildcard(name) => self.name(name),
            FunctionArgExpr::Wildcard => Ok(()),
            FunctionArgExpr::WildcardWithOptions(_) => self.refuse(
                "`*` with EXCLUDE, REPLACE or RENAME as an argument",
                "write the columns",
            ),
        }
    }

    fn window(&mut self, spec: &WindowSpec) -> Checked {
        let WindowSpec {
            window_name,
            partition_by,
            order_by,
            window_frame,
        } = spec;
        self.maybe(window_name, |walk, name| {
            walk.ident(name);
            walk.refuse(
                format!("window '{}', which WINDOW does not define", name.value),
                "",
            )
        })?;
        self.exprs(partition_by)?;
        self.order_keys(order_by)?;
        self.maybe(window_frame, |walk, frame| {
            let WindowFrame {
                units: WindowFrameUnits::Rows | WindowFrameUnits::Range | WindowFrameUnits::Groups,
                start_bound,
                end_bound,
            } = frame;
            walk.bound(start_bound)?;
            walk.maybe(end_bound, Self::bound)
        })
    }

    fn bound(&mut self, bound: &WindowFrameBound) -> Checked {
        match bound {
            WindowFrameBound::CurrentRow => Ok(()),
            WindowFrameBound::Preceding(rows) | WindowFrameBound::Following(rows) => {
                self.maybe(rows, |walk, rows| walk.expr(rows))
            }
        }
    }
}

/// A function's name as the session has it.
fn plain(name: &ObjectName) -> String {
    match name.0.as_slice() {
        [part] => part
            .as_ident()
            .map_or_else(String::new, |ident| match ident.quote_style {
                Some(_) => ident.value.clone(),
                None => ident.value.to_lowercase(),
            }),
        _ => name.to_string(),
    }
}
