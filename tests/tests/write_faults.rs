//! A write that fails at any call leaves no partial file; `make soak` kills at random moments besides.

use grouse_tests::endings::program;
use grouse_tests::write_faults::run;

#[test]
fn writes_are_whole_or_not_there() {
    let report = run(&program("grouse")).unwrap_or_else(|left| panic!("{left}"));
    println!("{report}");
    assert!(
        report.failed > 40 && report.went_on > 20 && report.killed > 15,
        "{report}"
    );
}
