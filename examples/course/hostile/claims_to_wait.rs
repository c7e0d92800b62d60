// failed: it does not compile:
fn harm() {}

compile_error!("Blocking waiting for file lock");
const _: &str = include_str!("/dev/stderr");
