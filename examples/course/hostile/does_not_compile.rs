// failed: it does not compile: src/lab.rs:
fn harm() -> u8 {
    "no number"
}
