// failed: your program did not end in 10 s; it printed no line of its log
fn harm() {
    loop {
        std::hint::spin_loop();
    }
}
