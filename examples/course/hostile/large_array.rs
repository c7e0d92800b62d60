// failed: it does not compile
fn harm() {
    static LARGE: [u8; 1 << 36] = [1; 1 << 36];
    std::hint::black_box(&LARGE);
}
