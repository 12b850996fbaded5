//! Commands about tables: their names, columns and keys, and statements that make them again.

use arrow::array::{Array, AsArray, RecordBatch};
use arrow::compute::cast;
use arrow::datatypes::DataType;
use grouse::sql_name;

use crate::lexer::{Kind, tokens};
use crate::print::{Format, Look};
use crate::report::Origin;
use crate::run::{Failure, FooterTime, Sink};
use crate::script::Text;

use super::Shell;
use super::words::{Arguments, Complaint};

impl Shell {
    /// `.tables`, `.tables v%`
    pub(super) fn list_tables(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        let pattern = arguments.at_most_one()?;
        let names = self.runner.session().tables().into_iter();
        let text: String = names
            .filter(|name| pattern.is_none_or(|pattern| is_like(name, pattern)))
            .map(|name| format!("{name}\n"))
            .collect();
        self.say(&text)
    }

    /// `.schema`: of all tables; `.schema visits`, `.schema 'visits/*.parquet'`: of one.
    pub(super) fn schema(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        let names = self.runner.session().tables();
        let relations: Vec<(String, String)> = match arguments.at_most_one()? {
            None => names
                .iter()
                .map(|name| (name.clone(), quoted(name, '"')))
                .collect(),
            Some(wanted) if names.iter().any(|name| name == wanted) => {
                vec![(wanted.to_owned(), quoted(wanted, '"'))]
            }
            Some(wanted) if wanted.contains(['/', '.', '*']) => {
                vec![(wanted.to_owned(), quoted(wanted, '\''))]
            }
            Some(wanted) => vec![(wanted.to_owned(), wanted.to_owned())],
        };
        for (name, relation) in relations {
            let planned = self.runner.plan(&format!("SELECT * FROM {relation}"));
            let schema = planned.map_err(without_place)?.schema();
            let fields = schema.fields();
            let widths = fields.iter().map(|f| f.name().chars().count());
            let width = widths.max().unwrap_or(0);
            let mut text = format!("{name}\n");
            for field in fields {
                let (name, type_name) = (field.name(), sql_name(field.data_type()));
                let null = if field.is_nullable() { "" } else { " not null" };
                text += &format!("  {name:width$}  {type_name}{null}\n");
            }
            self.say(&text)?;
        }
        Ok(())
    }

    pub(super) fn databases(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        arguments.none()?;
        self.query("SHOW DATABASES")
    }

    /// `.indexes`: there are none but those of keys.
    pub(super) fn indexes(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        let wanted = arguments.at_most_one()?;
        let names = self.runner.session().tables().into_iter();
        let is_wanted =
            |name: &String| wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(name));
        let parts: Vec<String> = names
            .filter(is_wanted)
            .map(|name| {
                let (text, relation) = (quoted(&name, '\''), quoted(&name, '"'));
                format!(
                    "SELECT {text} AS \"table\", column_name AS \"column\", \"key\" FROM (DESCRIBE {relation}) WHERE \"key\" IS NOT NULL"
                )
            })
            .collect();
        match (parts.is_empty(), wanted) {
            (true, None) => Ok(()),
            (true, Some(name)) => Err(no_table(name)),
            (false, _) => self.query(&parts.join(" UNION ALL ")),
        }
    }

    /// `.dump`: tables with their rows, then views, each after those that it reads.
    pub(super) fn dump(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        let wanted = arguments.at_most_one()?.map(str::to_owned);
        let is_wanted = |name: &String| {
            let wanted = wanted.as_ref();
            wanted.is_none_or(|wanted| wanted.eq_ignore_ascii_case(name))
        };
        let names: Vec<String> = self.runner.session().tables();
        let names: Vec<String> = names.into_iter().filter(is_wanted).collect();
        if let (Some(name), true) = (&wanted, names.is_empty()) {
            return Err(no_table(name));
        }
        let mut views = Vec::new();
        for name in names {
            let statement = self.statement_of(&name)?;
            if is_view(&statement) {
                views.push((name, statement));
                continue;
            }
            self.say(&format!("{statement};\n"))?;
            self.dump_rows(&name)?;
        }
        for (_, statement) in in_order(views) {
            self.say(&format!("{statement};\n"))?;
        }
        Ok(())
    }

    /// The statement that makes a table.
    fn statement_of(&self, name: &str) -> Result<String, Complaint> {
        let text = format!("SHOW CREATE TABLE {}", quoted(name, '"'));
        let rows = self.runner.rows(&text).map_err(without_place)?;
        let statement = rows.iter().find_map(definition);
        statement.ok_or_else(|| {
            Complaint::Text(format!(
                "no statement makes the table {name}: it was registered by a program"
            ))
        })
    }

    fn dump_rows(&mut self, name: &str) -> Result<(), Complaint> {
        let look = Look {
            table: name.to_owned(),
            ..Look::default()
        };
        let fit = self.fit();
        let to = self.aside.as_mut().unwrap_or(&mut self.base);
        let sink = Sink {
            output: &mut to.output,
            format: Format::Insert,
            look: &look,
            fit,
            footer_time: FooterTime::Hidden,
            results: &mut to.results,
        };
        let text = format!("SELECT * FROM {}", quoted(name, '"'));
        self.runner.run(&text, sink).map_err(without_place)?;
        Ok(())
    }

    /// Runs a statement that the user did not write.
    fn query(&mut self, sql: &str) -> Result<(), Complaint> {
        let text = Text {
            sql: sql.to_owned(),
            line: 1,
        };
        Ok(self.sql(&text, &Origin::Typed)?)
    }
}

/// The last column of what SHOW CREATE TABLE answers.
fn definition(batch: &RecordBatch) -> Option<String> {
    let column = batch.column_by_name("definition")?;
    let column = cast(column, &DataType::Utf8).ok()?;
    let column = column.as_string::<i32>();
    (column.len() > 0 && column.is_valid(0)).then(|| column.value(0).to_owned())
}

/// Whether a statement makes a view and not a table: `CREATE OR REPLACE VIEW …`.
fn is_view(statement: &str) -> bool {
    let mut words = statement.split_whitespace();
    let kind = words.find(|word| {
        ["TABLE", "VIEW"]
            .iter()
            .any(|k| word.eq_ignore_ascii_case(k))
    });
    kind.is_some_and(|word| word.eq_ignore_ascii_case("view"))
}

/// The views, each after those whose names it mentions.
fn in_order(mut views: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut ordered = Vec::with_capacity(views.len());
    while !views.is_empty() {
        let is_free = |(name, statement): &(String, String)| {
            let others = views.iter().filter(|(other, _)| other != name);
            !others
                .into_iter()
                .any(|(other, _)| mentions(statement, other))
        };
        // Names that are mentioned in a circle are columns, in one of the two.
        let next = views.iter().position(is_free).unwrap_or(0);
        ordered.push(views.remove(next));
    }
    ordered
}

/// Whether `name` stands in `statement`, with or without quotes.
fn mentions(statement: &str, name: &str) -> bool {
    tokens(statement).any(|(at, token)| {
        let text = &statement[at..at + token.len];
        match token.kind {
            Kind::Word => text.eq_ignore_ascii_case(name),
            Kind::Name => text.trim_matches(['"', '`']).eq_ignore_ascii_case(name),
            _ => false,
        }
    })
}

/// `name LIKE pattern` in any case: `%` is any text, `_` any character.
fn is_like(name: &str, pattern: &str) -> bool {
    let name: Vec<char> = name.to_lowercase().chars().collect();
    let pattern: Vec<char> = pattern.to_lowercase().chars().collect();
    // Whether the pattern so far matches the first n characters.
    let mut reached = vec![false; name.len() + 1];
    reached[0] = true;
    for wanted in pattern {
        if wanted == '%' {
            let first = reached.iter().position(|reached| *reached);
            let first = first.unwrap_or(reached.len());
            reached[first..].fill(true);
            continue;
        }
        for at in (0..name.len()).rev() {
            reached[at + 1] = reached[at] && (wanted == '_' || wanted == name[at]);
        }
        reached[0] = false;
    }
    reached[name.len()]
}

fn no_table(name: &str) -> Complaint {
    Complaint::Text(format!("table '{name}' does not exist"))
}

/// A failure of SQL that the user did not write: its line and column would only confuse.
pub(super) fn without_place(failure: Failure) -> Complaint {
    match failure {
        Failure::Engine(error) => Complaint::Text(placeless(&error.to_string())),
        other => Complaint::Failure(other),
    }
}

/// The message without ` (line 1, column 50)`.
fn placeless(message: &str) -> String {
    let Some((before, rest)) = message.split_once(" (line ") else {
        return message.to_owned();
    };
    match rest.split_once(')') {
        Some((place, after)) if place.contains(", column ") => format!("{before}{after}"),
        _ => message.to_owned(),
    }
}

pub(super) fn quoted(name: &str, quote: char) -> String {
    format!(
        "{quote}{}{quote}",
        name.replace(quote, &format!("{quote}{quote}"))
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_are_those_of_like() {
        for (name, pattern, expected) in [
            ("visits", "visits", true),
            ("Visits", "v%", true),
            ("visits", "%si%", true),
            ("visits", "v_sits", true),
            ("visits", "_", false),
            ("visits", "", false),
            ("", "%", true),
            ("visits", "%x%", false),
            ("aab", "a%ab", true),
        ] {
            assert_eq!(is_like(name, pattern), expected, "{name} {pattern}");
        }
    }

    #[test]
    fn places_are_taken_out_of_messages() {
        for (message, expected) in [
            ("no 'x' (line 1, column 50): not there", "no 'x': not there"),
            ("no 'x' (line 1, column 50)", "no 'x'"),
            ("no (line of) 'x'", "no (line of) 'x'"),
        ] {
            assert_eq!(placeless(message), expected);
        }
    }

    #[test]
    fn views_stand_after_those_that_they_read() {
        let view = |name: &str, from: &str| {
            (
                name.to_owned(),
                format!("CREATE VIEW {name} AS SELECT * FROM {from}"),
            )
        };
        let ordered = in_order(vec![view("a", "\"b\""), view("b", "C"), view("c", "t")]);
        let names: Vec<&str> = ordered.iter().map(|(name, _)| name.as_str()).collect();
        assert_eq!(names, ["c", "b", "a"]);
    }

    #[test]
    fn views_are_told_from_tables() {
        assert!(is_view("CREATE OR REPLACE VIEW v AS SELECT 1"));
        assert!(!is_view("CREATE TABLE \"view\" (view INT)"));
    }
}
