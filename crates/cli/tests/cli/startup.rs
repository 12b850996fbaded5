//! What the command line says is to run: SQL, scripts, files that become tables, the file of the start.

use std::fs;
use std::path::Path;

use crate::grouse::{command, grouse, grouse_fed, grouse_in};

const ORDERS: &str = "region,visits\nnorth,1\nsouth,2\n";

fn with_orders() -> tempfile::TempDir {
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("orders.csv"), ORDERS).unwrap();
    folder
}

#[test]
fn commands_run_in_their_order() {
    let folder = with_orders();
    let script = folder.path().join("b.sql");
    fs::write(&script, "SELECT 'b' AS x;\n").unwrap();
    let script = script.to_str().unwrap();
    let ran = grouse(&[
        "-c",
        "SELECT 'a' AS x",
        "-f",
        script,
        "-c",
        ".print c",
        "--cmd",
        ".mode list",
        "-cmd",
        ".headers off",
        script,
        "SELECT 'd' AS x; SELECT 'e' AS x",
    ]);
    assert_eq!(ran.succeeded(), "a\nb\nc\nb\nd\ne\n");
}

#[test]
fn a_failure_ends_what_follows() {
    let ran = grouse(&[
        "-csv",
        "-c",
        "SELECT 1 AS a",
        "-c",
        "SELECT nonsense",
        "-c",
        "SELECT 2 AS a",
    ]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "a\n1\n"));
    let script = ".bail off\n.mode csv\nSELECT nonsense;\n.nonsense\nSELECT 2 AS a;\n";
    let ran = grouse_fed(script, &[]);
    assert_eq!((ran.code, ran.stdout.as_str()), (Some(1), "a\n2\n"));
    assert_eq!(ran.stderr.matches("error: ").count(), 2, "{}", ran.stderr);
}

#[test]
fn files_are_tables() {
    let folder = with_orders();
    fs::create_dir(folder.path().join("parts")).unwrap();
    fs::write(folder.path().join("parts/1.csv"), ORDERS).unwrap();
    let sql = "SELECT (SELECT sum(visits) FROM orders) AS o, (SELECT count(*) FROM parts) AS p, \
        (SELECT count(*) FROM orders_2) AS q";
    let ran = grouse_in(
        folder.path(),
        &["-csv", "orders.csv", "parts/*.csv", "./orders.csv", sql],
    );
    assert_eq!(ran.succeeded(), "o,p,q\n3,2,2\n");
    let missing = grouse_in(folder.path(), &["nosuch.csv", "SELECT 1"]).failed(1);
    assert!(
        missing.contains("nosuch.csv") && !missing.contains("line 1"),
        "{missing}"
    );
    // Without SQL it comes from standard input.
    let orders = folder.path().join("orders.csv");
    let ran = grouse_fed(
        "SELECT max(region) AS r FROM orders;",
        &["-csv", orders.to_str().unwrap()],
    );
    assert_eq!(ran.succeeded(), "r\nsouth\n");
}

#[test]
fn standard_input_is_a_table() {
    let sql = "SELECT sum(visits) AS s FROM stdin";
    assert_eq!(
        grouse_fed(ORDERS, &["-csv", "-", sql]).succeeded(),
        "s\n3\n"
    );
}

/// A run whose configuration lies in `folder`.
fn configured(folder: &Path, arguments: &[&str]) -> (Option<i32>, String) {
    let mut command = command(arguments);
    let output = command.env("XDG_CONFIG_HOME", folder).output().unwrap();
    (
        output.status.code(),
        String::from_utf8(output.stdout).unwrap(),
    )
}

#[test]
fn a_file_runs_at_the_start() {
    let folder = with_orders();
    let init = folder.path().join("grouse");
    fs::create_dir(&init).unwrap();
    fs::write(
        init.join("init.sql"),
        ".mode list\n.nullvalue -\nCREATE MACRO twice(x) AS 2 * x;\n",
    )
    .unwrap();
    let other = folder.path().join("other.sql");
    fs::write(&other, ".mode line\n").unwrap();
    let other = other.to_str().unwrap();
    let sql = "SELECT 2 * 21 AS a, NULL AS b";
    let run = |arguments: &[&str]| configured(folder.path(), arguments);
    assert_eq!(
        run(&["SELECT twice(21) AS a, NULL AS b"]),
        (Some(0), "a|b\n42|-\n".into())
    );
    assert_eq!(run(&["-csv", sql]), (Some(0), "a,b\n42,-\n".into()));
    assert_eq!(
        run(&["--no-init", "-csv", sql]),
        (Some(0), "a,b\n42,\n".into())
    );
    assert_eq!(
        run(&["-init", other, sql]),
        (Some(0), "a = 42\nb = NULL\n".into())
    );
    assert_eq!(run(&["--init", "/no/such.sql", sql]).0, Some(1));
}

#[test]
fn words_without_a_dot_are_commands() {
    for word in ["exit", "quit;", "\\q", ".q"] {
        let ran = grouse_fed(
            &format!("SELECT 1 AS a;\n{word}\nSELECT 2 AS a;\n"),
            &["-csv"],
        );
        assert_eq!(ran.succeeded(), "a\n1\n", "{word}");
    }
    assert!(grouse(&["help"]).succeeded().contains(".tables"));
    assert!(grouse(&["\\?"]).succeeded().contains(".tables"));
    assert_eq!(grouse(&["-c", ".exit 3", "-c", "SELECT 1"]).code, Some(3));
}

#[test]
fn the_manual_and_completions() {
    for (what, part) in [
        ("man", ".SH OPTIONS"),
        ("bash", "complete -o filenames -F _grouse grouse"),
        ("zsh", "#compdef grouse"),
        ("fish", "complete -c grouse -l memory-limit -r"),
    ] {
        let text = grouse(&["--generate", what]).succeeded();
        assert!(text.contains(part) && text.contains("format"), "{text}");
    }
    let script = grouse(&["--generate", "bash"]).succeeded();
    let probe = format!(
        "{script}\nCOMP_WORDS=(grouse --form); COMP_CWORD=1; _grouse; echo \"${{COMPREPLY[@]}}\"\n\
         COMP_WORDS=(grouse --format mark); COMP_CWORD=2; _grouse; echo \"${{COMPREPLY[@]}}\""
    );
    let ran = std::process::Command::new("bash")
        .args(["-c", &probe])
        .output()
        .unwrap();
    assert_eq!(String::from_utf8_lossy(&ran.stdout), "--format\nmarkdown\n");
}
