// failed: your program panicked at src/lab.rs:22: on purpose
fn harm() {
    panic!("on purpose");
}
