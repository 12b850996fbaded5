//! `--safe`: what SQL reaches then, and what the command line still does.

use crate::grouse::{grouse, grouse_fed};

#[test]
fn sql_reaches_no_file_and_no_address() {
    let folder = tempfile::tempdir().unwrap();
    let csv = folder.path().join("a.csv");
    std::fs::write(&csv, "x\n1\n").unwrap();
    for (sql, option) in [
        (format!("SELECT * FROM '{}'", csv.display()), "allow_files"),
        (
            "SELECT * FROM read_csv('/dev/stdin')".to_string(),
            "allow_files",
        ),
        (
            format!("COPY (SELECT 1) TO '{}'", csv.display()),
            "allow_files",
        ),
        (
            "SELECT * FROM 'http://127.0.0.1:9/a.csv'".to_string(),
            "allow_network",
        ),
        ("SET threads = 1".to_string(), "lock_options"),
        ("SET group_by_table = 'row'".to_string(), "lock_options"),
    ] {
        let ran = grouse(&["--safe", &sql]);
        assert_eq!(ran.code, Some(1), "{sql}");
        assert!(ran.stderr.contains(option), "{sql}: {}", ran.stderr);
    }
    for command in [
        ".shell echo run",
        ".system echo run",
        "\\! echo run",
        ".output |echo run",
        ".once |echo run",
        ".pager echo run",
        ".cd /",
        ".read /etc/passwd",
        "\\i /etc/passwd",
    ] {
        let ran = grouse_fed(&format!("{command}\nSELECT 1;\n"), &["--safe"]);
        assert!(
            ran.stderr.contains("allow_files"),
            "{command}: {}",
            ran.stderr
        );
        assert!(!ran.stdout.contains("run"), "{command}: {}", ran.stdout);
    }
    let ran = grouse_fed(&format!(".schema '{}'\n", csv.display()), &["--safe"]);
    assert!(ran.stderr.contains("allow_files"), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(&csv).unwrap(), "x\n1\n");
}

#[test]
fn the_command_line_names_what_is_open() {
    let folder = tempfile::tempdir().unwrap();
    std::fs::write(folder.path().join("a.csv"), "x\n1\n").unwrap();
    let (path, out) = (folder.path().display(), folder.path().join("out.csv"));
    let ran = grouse(&[
        "--safe",
        "--allowed-directories",
        &path.to_string(),
        "--set",
        "datafusion.execution.batch_size=7",
        "--cmd",
        "SET threads = 1",
        "-o",
        out.to_str().unwrap(),
        &format!("SELECT x + 1 AS y FROM '{path}/a.csv'"),
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert_eq!(std::fs::read_to_string(out).unwrap(), "y\n2\n");
}
