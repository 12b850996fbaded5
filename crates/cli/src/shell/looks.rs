//! Commands about how results look and when the shell speaks.

use clap::ValueEnum;

use crate::print::{Format, Header, Separators};

use super::words::{Arguments, Complaint, unescaped};
use super::{Bail, Shell, Timer, binary_on_terminal};

impl Shell {
    pub(super) fn set_mode(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        let (name, table) = match arguments.words.as_slice() {
            [] => return self.say(&format!("{}\n", self.format().name())),
            [name] => (name, None),
            [name, table] => (name, Some(table)),
            _ => return Err(Complaint::Usage),
        };
        let Ok(format) = Format::from_str(name, true) else {
            let formats: Vec<String> = Format::value_variants().iter().map(|f| f.name()).collect();
            let formats = formats.join(", ");
            return Err(Complaint::Text(format!(
                "there is no format {name}; one of {formats}"
            )));
        };
        if format.is_binary() && self.destination().output.is_terminal() {
            return Err(Complaint::Text(binary_on_terminal(format)));
        }
        match (format, table) {
            (Format::Insert, Some(table)) => table.clone_into(&mut self.settings.look.table),
            (_, Some(_)) => return Err(Complaint::Usage),
            _ => {}
        }
        self.settings.format = Some(format);
        Ok(())
    }

    pub(super) fn set_max_rows(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        match arguments.at_most_one()? {
            None => {
                let shown = match self.fit().rows_max {
                    usize::MAX => 0,
                    rows => rows,
                };
                self.say(&format!("{shown}\n"))
            }
            Some(rows) => {
                self.settings.rows_max = Some(rows.parse().map_err(|_| Complaint::Usage)?);
                Ok(())
            }
        }
    }

    pub(super) fn set_null(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        self.settings.look.null = arguments.at_most_one()?.map(str::to_owned);
        Ok(())
    }

    pub(super) fn set_separator(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        if arguments.words.len() > 2 {
            return Err(Complaint::Usage);
        }
        let mut words = arguments.words.iter().map(|word| unescaped(word));
        let (column, row) = (words.next(), words.next());
        if column.as_ref().is_some_and(String::is_empty)
            || row.as_ref().is_some_and(String::is_empty)
        {
            return Err(Complaint::Usage);
        }
        self.settings.look.separators = Separators { column, row };
        Ok(())
    }

    pub(super) fn set_headers(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        self.settings.look.header = match arguments.switch()? {
            true => Header::Shown,
            false => Header::Hidden,
        };
        Ok(())
    }

    pub(super) fn set_widths(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        let widths = arguments.words.iter().map(|word| word.parse());
        let widths = widths.collect::<Result<Vec<isize>, _>>();
        self.settings.look.widths = widths.map_err(|_| Complaint::Usage)?;
        Ok(())
    }

    pub(super) fn set_timer(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        self.settings.timer = match arguments.switch()? {
            true => Timer::Always,
            false => Timer::Never,
        };
        Ok(())
    }

    pub(super) fn set_echo(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        self.settings.echoes = arguments.switch()?;
        Ok(())
    }

    pub(super) fn set_bail(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        self.settings.bail = match arguments.switch()? {
            true => Bail::Always,
            false => Bail::Never,
        };
        Ok(())
    }

    pub(super) fn set_prompt(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        if arguments.words.is_empty() {
            return Err(Complaint::Usage);
        }
        self.settings.prompt = arguments.words.join(" ");
        Ok(())
    }

    pub(super) fn set_pager(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        let command = match arguments.switch() {
            Ok(true) => None,
            Ok(false) => {
                self.settings.pager_is_wanted = false;
                return Ok(self.base.output.stop_paging()?);
            }
            Err(_) if arguments.line.is_empty() => return Err(Complaint::Usage),
            Err(_) => Some(arguments.line.clone()),
        };
        self.settings.pager_is_wanted = true;
        self.base.output.page(command)?;
        Ok(())
    }

    pub(super) fn print(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        self.say(&format!("{}\n", arguments.words.join(" ")))
    }

    pub(super) fn show_settings(&mut self, arguments: &Arguments) -> Result<(), Complaint> {
        arguments.none()?;
        let switch = |is_on| if is_on { "on" } else { "off" };
        let settings = &self.settings;
        let look = &settings.look;
        let widths: Vec<String> = look.widths.iter().map(isize::to_string).collect();
        let own = |text: &Option<String>| match text {
            Some(text) => format!("{text:?}"),
            None => "the format's own".to_owned(),
        };
        let bail = match settings.bail {
            Bail::Scripts => "on in scripts",
            Bail::Always => "on",
            Bail::Never => "off",
        };
        let timer = match settings.timer {
            Timer::Footer => "in footers",
            Timer::Always => "on",
            Timer::Never => "off",
        };
        let pager = self.base.output.pager().unwrap_or("off").to_owned();
        let lines = [
            ("bail", bail.to_owned()),
            ("echo", switch(settings.echoes).to_owned()),
            ("headers", switch(look.header == Header::Shown).to_owned()),
            (
                "maxrows",
                match self.fit().rows_max {
                    usize::MAX => "0".to_owned(),
                    rows => rows.to_string(),
                },
            ),
            ("mode", self.format().name()),
            ("nullvalue", own(&look.null)),
            (
                "output",
                self.aside
                    .as_ref()
                    .map_or("not redirected", |_| "redirected")
                    .to_owned(),
            ),
            ("pager", pager),
            ("prompt", format!("{:?}", settings.prompt)),
            ("separator", own(&look.separators.column)),
            ("timer", timer.to_owned()),
            (
                "width",
                match widths.is_empty() {
                    true => "the columns' own".to_owned(),
                    false => widths.join(" "),
                },
            ),
        ];
        let text: String = lines
            .iter()
            .map(|(name, value)| format!("{name:>9}: {value}\n"))
            .collect();
        self.say(&text)
    }
}
