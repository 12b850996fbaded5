//! The manual page, and what shells need to complete the command line.
//! In: the options and the dot commands, from their tables. Out: roff, and scripts for bash, zsh and fish, on standard output.
//! Invariant: an option or a command that is added is in all of them.

use clap::{Arg, Command};

use crate::args::{Args, EXAMPLES, Generated};
use crate::shell::COMMANDS;

/// The text of `what`.
pub fn text(what: Generated) -> String {
    let mut command = Args::whole_command();
    command.build();
    match what {
        Generated::Man => page(&command),
        Generated::Bash => bash(&command),
        Generated::Zsh => zsh(&command),
        Generated::Fish => fish(&command),
    }
}

/// Options that people see.
fn options(command: &Command) -> impl Iterator<Item = &Arg> {
    let seen = |arg: &&Arg| !arg.is_hide_set() && arg.get_long().is_some();
    command.get_arguments().filter(seen)
}

fn help(arg: &Arg) -> String {
    arg.get_help().map(ToString::to_string).unwrap_or_default()
}

/// What the value of an option is called, if it takes one.
fn value_name(arg: &Arg) -> Option<String> {
    let takes = arg.get_action().takes_values();
    let name = || arg.get_value_names().and_then(|names| names.first());
    takes.then(|| name().map_or_else(|| "VALUE".to_owned(), ToString::to_string))
}

/// The values that an option takes, if they are few.
fn values(arg: &Arg) -> Vec<String> {
    let values = arg.get_possible_values().into_iter();
    let takes = arg.get_action().takes_values();
    values
        .filter(|_| takes)
        .map(|value| value.get_name().to_owned())
        .collect()
}

/// The spellings of an option: `-c`, `--command`.
fn spellings(arg: &Arg) -> Vec<String> {
    let short = arg.get_short().map(|short| format!("-{short}"));
    let long = arg.get_long().map(|long| format!("--{long}"));
    short.into_iter().chain(long).collect()
}

fn page(command: &Command) -> String {
    let version = command.get_version().unwrap_or_default();
    let about = command.get_about().map(ToString::to_string);
    let about = about.unwrap_or_default();
    let mut page = format!(
        ".TH GROUSE 1 \"\" \"grouse {version}\"\n.SH NAME\ngrouse \\- {}\n.SH SYNOPSIS\n.B grouse\n[\\fIOPTION\\fR]... \
         [\\fISQL\\fR|\\fIFILE\\fR]...\n.SH OPTIONS\n",
        roff(about.trim_end_matches('.'))
    );
    for arg in options(command) {
        let spellings: Vec<String> = spellings(arg).iter().map(|s| roff(s)).collect();
        let value = value_name(arg).map(|name| format!(" \\fI{}\\fR", roff(&name)));
        page += &format!(
            ".TP\n\\fB{}\\fR{}\n{}\n",
            spellings.join(", "),
            value.unwrap_or_default(),
            roff(&help(arg))
        );
        let values = values(arg);
        if !values.is_empty() {
            page += &format!("One of {}.\n", roff(&values.join(", ")));
        }
    }
    page += ".SH COMMANDS\nAt the prompt and between statements of scripts:\n";
    for command in COMMANDS {
        page += &format!(
            ".TP\n\\fB.{}\\fR {}\n{}\n",
            command.name,
            roff(command.arguments),
            roff(command.help)
        );
    }
    page + &format!(".SH USE\n.nf\n{}\n.fi\n", roff(EXAMPLES))
}

/// Text that roff takes as it is.
fn roff(text: &str) -> String {
    let escaped = text.replace('\\', "\\e").replace('-', "\\-");
    let line = |line: &str| match line.starts_with(['.', '\'']) {
        true => format!("\\&{line}"),
        false => line.to_owned(),
    };
    let lines: Vec<String> = escaped.lines().map(line).collect();
    lines.join("\n")
}

fn bash(command: &Command) -> String {
    let all: Vec<String> = options(command).flat_map(spellings).collect();
    let cases: String = options(command)
        .filter(|arg| !values(arg).is_empty())
        .map(|arg| {
            format!(
                "        {}) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")); return ;;\n",
                spellings(arg).join("|"),
                values(arg).join(" ")
            )
        })
        .collect();
    format!(
        "_grouse() {{\n    local word=${{COMP_WORDS[COMP_CWORD]}} before=${{COMP_WORDS[COMP_CWORD-1]}}\n    case $before in\n{cases}    \
         esac\n    case $word in\n        -*) COMPREPLY=($(compgen -W \"{}\" -- \"$word\")) ;;\n        \
         *) COMPREPLY=($(compgen -f -- \"$word\")) ;;\n    esac\n}}\ncomplete -o filenames -F _grouse grouse\n",
        all.join(" ")
    )
}

fn zsh(command: &Command) -> String {
    let mut script = String::from("#compdef grouse\n_arguments -s \\\n");
    for arg in options(command) {
        let help = help(arg).replace('\'', "'\\''").replace(['[', ']'], "");
        let value = value_name(arg).map(|name| match values(arg).as_slice() {
            [] => format!(":{name}:_files"),
            values => format!(":{name}:({})", values.join(" ")),
        });
        for spelling in spellings(arg) {
            script += &format!(
                "  '*{spelling}[{help}]{}' \\\n",
                value.as_deref().unwrap_or_default()
            );
        }
    }
    script + "  '*:SQL or file:_files'\n"
}

fn fish(command: &Command) -> String {
    let mut script = String::new();
    for arg in options(command) {
        script += "complete -c grouse";
        if let Some(short) = arg.get_short() {
            script += &format!(" -s {short}");
        }
        if let Some(long) = arg.get_long() {
            script += &format!(" -l {long}");
        }
        let values = values(arg);
        if !values.is_empty() {
            script += &format!(" -x -a '{}'", values.join(" "));
        } else if value_name(arg).is_some() {
            script += " -r";
        }
        let help = help(arg).replace('\\', "\\\\").replace('\'', "\\'");
        script += &format!(" -d '{help}'\n");
    }
    script
}

#[cfg(test)]
mod tests {
    use super::*;
    use clap::ValueEnum;

    #[test]
    fn all_have_every_option() {
        for what in Generated::value_variants() {
            let text = text(*what);
            for option in ["memory", "max", "format", "command", "markdown"] {
                assert!(text.contains(option), "{option} is not in {text}");
            }
            assert!(!text.contains("generate"), "{text}");
        }
    }

    #[test]
    fn the_page_has_every_command() {
        let page = text(Generated::Man);
        for command in COMMANDS {
            assert!(page.contains(&format!("\\fB.{}\\fR", command.name)));
        }
    }

    #[test]
    fn roff_takes_text_as_it_is() {
        assert_eq!(roff("a-b\\c\n.d\n'e"), "a\\-b\\ec\n\\&.d\n\\&'e");
    }
}
