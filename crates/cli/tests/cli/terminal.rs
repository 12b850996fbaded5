//! The shell on a terminal: the prompt, its history, the bar, tables that fit, Ctrl-C.
//! In: keys, written to a pseudo-terminal. Out: what the shell draws there.

use std::fs::File;
use std::io::{Read, Write};
use std::os::fd::{AsRawFd, FromRawFd, OwnedFd};
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Child, Command, ExitStatus};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// For machines that are busy.
const WAIT_MAX: Duration = Duration::from_secs(20);
const COLUMNS: u16 = 80;

/// A shell on a terminal of its own.
struct Terminal {
    child: Child,
    keys: File,
    drawn: Arc<Mutex<Vec<u8>>>,
    read: usize,
}

impl Terminal {
    /// Without colors and pager, so that what is drawn is what is read.
    fn start(home: &Path, arguments: &[&str]) -> Terminal {
        Terminal::start_with(home, arguments, &[("NO_COLOR", "1"), ("PAGER", "")])
    }

    fn start_with(home: &Path, arguments: &[&str], environment: &[(&str, &str)]) -> Terminal {
        let (ours, theirs) = pair();
        let mut command = Command::new(env!("CARGO_BIN_EXE_grouse"));
        command
            .args(arguments)
            .current_dir(home)
            .env("XDG_STATE_HOME", home)
            .env("XDG_CONFIG_HOME", home)
            .env("TERM", "xterm")
            .env_remove("NO_COLOR")
            .envs(environment.iter().copied());
        let end = || theirs.try_clone().unwrap();
        command.stdin(end()).stdout(end()).stderr(end());
        // SAFETY: setsid and ioctl may be called between fork and exec; 0 is the terminal by then.
        unsafe {
            command.pre_exec(|| {
                libc::setsid();
                libc::ioctl(0, libc::TIOCSCTTY, 0);
                Ok(())
            });
        }
        let child = command.spawn().expect("the binary starts");
        let drawn = Arc::new(Mutex::new(Vec::new()));
        let (mut screen, kept) = (File::from(ours.try_clone().unwrap()), drawn.clone());
        std::thread::spawn(move || {
            let mut bytes = [0; 4096];
            // Reading fails when the shell has closed its end.
            while let Ok(count @ 1..) = screen.read(&mut bytes) {
                kept.lock().unwrap().extend_from_slice(&bytes[..count]);
            }
        });
        Terminal {
            child,
            keys: File::from(ours),
            drawn,
            read: 0,
        }
    }

    fn press(&mut self, keys: &str) {
        self.keys.write_all(keys.as_bytes()).unwrap();
    }

    /// Pastes lines, and presses Enter.
    fn paste(&mut self, lines: &str) {
        self.press(&format!("\u{1b}[200~{lines}\u{1b}[201~\r"));
    }

    /// Waits until `text` is drawn; gives what has been drawn since the last wait, up to its end.
    #[track_caller]
    fn wait_for(&mut self, text: &str) -> String {
        let started = Instant::now();
        loop {
            let drawn = self.drawn.lock().unwrap().clone();
            let new = String::from_utf8_lossy(&drawn[self.read..]).into_owned();
            if let Some(at) = new.find(text) {
                let end = at + text.len();
                self.read += end;
                return new[..end].to_owned();
            }
            assert!(
                started.elapsed() < WAIT_MAX,
                "{text:?} is not drawn but {new:?}"
            );
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    fn end(mut self) -> (ExitStatus, String) {
        let started = Instant::now();
        let status = loop {
            match self.child.try_wait().unwrap() {
                Some(status) => break status,
                None if started.elapsed() > WAIT_MAX => {
                    self.child.kill().unwrap();
                    panic!("the shell does not leave");
                }
                None => std::thread::sleep(Duration::from_millis(10)),
            }
        };
        // What it drew last is on its way.
        std::thread::sleep(Duration::from_millis(100));
        let drawn = self.drawn.lock().unwrap();
        (
            status,
            String::from_utf8_lossy(&drawn[self.read..]).into_owned(),
        )
    }
}

/// Both ends of a pseudo-terminal: ours and the shell's.
fn pair() -> (OwnedFd, OwnedFd) {
    let (mut ours, mut theirs) = (-1, -1);
    let mut size = libc::winsize {
        ws_row: 24,
        ws_col: COLUMNS,
        ws_xpixel: 0,
        ws_ypixel: 0,
    };
    let null = std::ptr::null_mut();
    // SAFETY: openpty fills in both descriptors, which nobody else owns; name and settings are not asked for.
    let (ours, theirs) = unsafe {
        assert_eq!(
            libc::openpty(&mut ours, &mut theirs, null, null.cast(), &raw mut size),
            0
        );
        (OwnedFd::from_raw_fd(ours), OwnedFd::from_raw_fd(theirs))
    };
    // Without this a shell started by another test would keep the terminal open.
    for end in [&ours, &theirs] {
        // SAFETY: the descriptor is open.
        unsafe { libc::fcntl(end.as_raw_fd(), libc::F_SETFD, libc::FD_CLOEXEC) };
    }
    (ours, theirs)
}

#[test]
fn statements_of_several_lines_and_their_history() {
    let home = tempfile::tempdir().unwrap();
    let mut shell = Terminal::start(home.path(), &[]);
    shell.wait_for("grouse> ");
    shell.press("select 40 +\r");
    shell.press("  2 as answer;\r");
    shell.wait_for("│     42 │");
    shell.wait_for("1 row in ");
    shell.wait_for("grouse> ");
    shell.press("select nonsense;\r");
    shell.wait_for("error: ");
    shell.wait_for("grouse> ");
    shell.press("\u{4}");
    let (status, _) = shell.end();
    assert_eq!(status.code(), Some(0));

    let mut shell = Terminal::start(home.path(), &[]);
    shell.wait_for("grouse> ");
    shell.press("\u{1b}[A\u{1b}[A");
    shell.wait_for("2 as answer;");
    shell.press("\r");
    shell.wait_for("│     42 │");
    shell.wait_for("grouse> ");
    shell.press(".exit\r");
    assert_eq!(shell.end().0.code(), Some(0));
}

#[test]
fn an_interrupt_comes_back_to_the_prompt() {
    let home = tempfile::tempdir().unwrap();
    let mut shell = Terminal::start(home.path(), &[]);
    shell.wait_for("grouse> ");
    shell.press("select what is\r");
    shell.wait_for("what is\r\n");
    shell.press("\u{3}");
    shell.wait_for("\u{1b}[?2004l");
    shell.wait_for("grouse> ");
    shell.press("select sum(number) from numbers(1000000000000000);\r");
    shell.wait_for("rows/s");
    shell.press("\u{3}");
    shell.wait_for("interrupted");
    shell.wait_for("grouse> ");
    shell.press("select 'still' || ' here' as a;\r");
    shell.wait_for("│ still here │");
    shell.wait_for("grouse> ");
    shell.press(".quit\r");
    assert_eq!(shell.end().0.code(), Some(0));
}

#[test]
fn the_bar_is_gone_when_the_query_is_done() {
    let home = tempfile::tempdir().unwrap();
    let sql = "select count(*) as c from numbers(1000000000000000) where number % 3 = 5";
    let mut shell = Terminal::start(home.path(), &[sql]);
    shell.wait_for("% ░░░░");
    shell.wait_for(" rows/s");
    shell.press("\u{3}");
    let (status, drawn) = shell.end();
    assert_eq!(status.code(), Some(130));
    let (_, last) = drawn.rsplit_once('\r').expect("the bar is erased");
    assert_eq!(last, "\u{1b}[2K");
}

#[test]
fn a_table_fits_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let columns: Vec<String> = (0..30).map(|n| format!("number + {n} as c{n}")).collect();
    let sql = format!(
        "select {}, repeat('long ', 100) as text from numbers(100)",
        columns.join(", ")
    );
    let (status, drawn) = Terminal::start(home.path(), &[&sql]).end();
    assert_eq!(status.code(), Some(0));
    // On a busy machine a line about progress comes first, and is erased.
    let drawn = drawn.rsplit("\u{1b}[2K").next().unwrap_or_default();
    let widths = drawn.lines().map(|line| line.trim_end().chars().count());
    assert_eq!(widths.max(), Some(usize::from(COLUMNS)), "{drawn}");
    assert!(
        drawn.contains(" … ") && drawn.contains("100 rows (40 shown), 31 columns ("),
        "{drawn}"
    );
}

#[test]
fn bytes_are_kept_from_the_terminal() {
    let home = tempfile::tempdir().unwrap();
    let (status, drawn) = Terminal::start(home.path(), &["--format", "parquet", "select 1"]).end();
    assert_eq!(status.code(), Some(2));
    assert!(drawn.contains("not for a terminal"), "{drawn}");
}

#[test]
fn pasting_four_statements_runs_four() {
    let home = tempfile::tempdir().unwrap();
    let mut shell = Terminal::start(home.path(), &[]);
    shell.wait_for("grouse> ");
    let lines =
        "select 'a' || 1 as c;\rselect 'b' ||\r2 as c;\r.print three\rselect 'd' || 4 as c;";
    shell.paste(lines);
    for shown in ["│ a1 ", "│ b2 ", "three", "│ d4 "] {
        shell.wait_for(shown);
    }
    shell.wait_for("grouse> ");
    shell.press("exit\r");
    assert_eq!(shell.end().0.code(), Some(0));
}

#[test]
fn tab_completes() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("orders.csv"), "region,visits\nnorth,17\n").unwrap();
    let mut shell = Terminal::start(home.path(), &[]);
    shell.wait_for("grouse> ");
    shell.press("sele\t count(*) as c from 'ord\t;\r");
    shell.wait_for("select count(*) as c from 'orders.csv'");
    shell.wait_for("│     1 │");
    shell.wait_for("grouse> ");
    shell.press("select ");
    shell.press("from 'orders.csv';");
    shell.press(&"\u{1b}[D".repeat("from 'orders.csv';".len()));
    shell.press("vis\t \r");
    shell.wait_for("select visits from 'orders.csv';");
    shell.wait_for("│     17 │");
    shell.wait_for("grouse> ");
    shell.press(".mod\tmarkd\t\r");
    shell.wait_for(".mode markdown");
    std::thread::sleep(Duration::from_millis(200));
    shell.press("select 'done' as a;\r");
    shell.wait_for("| done |");
    shell.wait_for("grouse> ");
    shell.press("\\q\r");
    assert_eq!(shell.end().0.code(), Some(0));
}

#[test]
fn what_is_typed_has_colors_unless_they_are_not_wanted() {
    let home = tempfile::tempdir().unwrap();
    let mut shell = Terminal::start_with(home.path(), &[], &[("PAGER", "")]);
    shell.wait_for("grouse> ");
    shell.press("select 'text', 17 -- note");
    shell.wait_for("\u{1b}[1;34mselect\u{1b}[0m");
    shell.wait_for("\u{1b}[32m'text'\u{1b}[0m");
    shell.wait_for("\u{1b}[36m17\u{1b}[0m");
    shell.wait_for("\u{1b}[2m-- note\u{1b}[0m");
    shell.press("\u{3}");
    shell.wait_for("\n");
    shell.wait_for("grouse> ");
    shell.press(".exit\r");
    assert_eq!(shell.end().0.code(), Some(0));

    let mut shell = Terminal::start(home.path(), &[]);
    shell.wait_for("grouse> ");
    shell.press("select 'plain' as a;\r");
    let drawn = shell.wait_for("│ plain");
    assert!(!drawn.contains("\u{1b}[32m"), "{drawn:?}");
    shell.press(".exit\r");
    assert_eq!(shell.end().0.code(), Some(0));
}

#[test]
fn long_results_are_paged() {
    let home = tempfile::tempdir().unwrap();
    let seen = home.path().join("seen");
    let pager = format!("cat > '{}'; echo paged", seen.display());
    let environment = [("NO_COLOR", "1"), ("PAGER", pager.as_str())];
    let mut shell = Terminal::start_with(home.path(), &["-csv"], &environment);
    shell.wait_for("grouse> ");
    shell.press("select number from numbers(30) order by number;\r");
    shell.wait_for("paged");
    let expected: String = (0..30).map(|n| format!("{n}\n")).collect();
    let expected = format!("number\n{expected}");
    assert_eq!(std::fs::read_to_string(&seen).unwrap(), expected);
    shell.wait_for("grouse> ");
    // What fits the screen does not go there, nor does anything once the pager is off.
    shell.press("select number + 100 as n from numbers(3) order by n;\r");
    shell.wait_for("100\r\n101\r\n102\r\n");
    shell.wait_for("grouse> ");
    shell.paste(".pager off\rselect number + 200 as n from numbers(30) order by n;");
    shell.wait_for("\n200\r\n");
    shell.wait_for("\n229\r\n");
    shell.wait_for("grouse> ");
    // A reader that leaves at once is no error, also of a result without end.
    shell.paste(".pager head -n 2\rselect number + 300 from numbers(1000000000000);\r.print after");
    // The first row of either worker: 300, or 500000000300.
    shell.wait_for("300\r\n");
    let drawn = shell.wait_for("after\r\n");
    assert!(!drawn.contains("error"), "{drawn}");
    shell.wait_for("grouse> ");
    shell.press(".exit\r");
    assert_eq!(shell.end().0.code(), Some(0));
}

#[test]
fn a_file_is_a_table_at_the_prompt() {
    let home = tempfile::tempdir().unwrap();
    std::fs::write(home.path().join("orders.csv"), "region,visits\nnorth,17\n").unwrap();
    std::fs::create_dir(home.path().join("grouse")).unwrap();
    let init = home.path().join("grouse/init.sql");
    std::fs::write(&init, ".prompt \"db> \"\n.nonsense\n").unwrap();
    let mut shell = Terminal::start(home.path(), &["orders.csv"]);
    shell.wait_for("there is no command .nonsense");
    shell.wait_for("The table orders is orders.csv.");
    shell.wait_for("db> ");
    shell.press("select visits + 1 as v from orders;\r");
    shell.wait_for("│    18 │");
    shell.wait_for("db> ");
    shell.press("\\d\r");
    shell.wait_for("orders\r\n");
    shell.press(".shell echo out\\side\r");
    shell.wait_for("outside\r\n");
    shell.press(".exit 7\r");
    assert_eq!(shell.end().0.code(), Some(7));
}
