// failed: your program has written a file of more than 64 MiB
fn harm() {
    use std::io::Write;
    let mut file = std::fs::File::create("large").unwrap();
    for _ in 0..256 {
        file.write_all(&[1; 1 << 20]).unwrap();
    }
}
