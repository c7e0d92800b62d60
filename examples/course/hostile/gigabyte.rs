// failed: your program has printed more than 8 MiB
fn harm() {
    let line = "x".repeat(1 << 20);
    for _ in 0..1024 {
        println!("{line}");
    }
}
