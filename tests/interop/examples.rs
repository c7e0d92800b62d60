//! The examples of hyper, axum and TLS as a user runs them.

use testing::child;

/// Returns the output of `cargo run -p PACKAGE --example NAME -- ARG`.
fn printed(package: &str, name: &str, arg: &str) -> String {
    let mut cargo = child::cargo();
    cargo.args(["run", "--quiet", "--offline", "-p", package, "--example", name, "--", arg]);
    let ran = child::output_within(child::BUILD, &mut cargo);
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    String::from_utf8(ran.stdout).unwrap()
}

#[test]
fn every_example_has_help_a_version_and_limits() {
    for (package, name, is_server) in [
        ("trapline-example-hyper", "axum_server", true),
        ("trapline-example-hyper", "hyper_client", false),
        ("trapline-example-hyper", "hyper_server", true),
        ("trapline-example-tls", "tls_echo", true),
    ] {
        let version = format!("{name} {}\n", env!("CARGO_PKG_VERSION"));
        assert_eq!(printed(package, name, "--version"), version);
        let help = printed(package, name, "--help");
        assert!(help.contains(&format!("Usage: {name} [OPTIONS]")), "{help}");
        assert!(help.lines().all(|line| line.len() <= 100), "{help}");
        let limits = printed(package, name, "--print-limits");
        assert_eq!(limits.contains("drain 10000 ms\n"), is_server, "{limits}");
    }
}
