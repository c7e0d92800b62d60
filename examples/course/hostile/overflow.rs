// failed: your program panicked at src/lab.rs:23, `drop(short - long);`: overflow when subtracting
fn harm() {
    let (short, long) = (std::time::Duration::ZERO, std::time::Duration::MAX);
    drop(short - long);
}
