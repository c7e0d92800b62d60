// failed: your program uses more than 512 MiB of memory
fn harm() {
    let mut held = Vec::new();
    for nth in 0..4096 {
        held.push(vec![nth as u8 | 1; 1 << 20]);
    }
    std::hint::black_box(held);
}
