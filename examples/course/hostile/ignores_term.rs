// failed: your program did not end in 10 s; it printed no line of its log
fn harm() {
    let script = "trap '' TERM INT HUP QUIT; while :; do sleep 1; done; : MARK";
    std::process::Command::new("sh").args(["-c", script]).spawn().unwrap();
    loop {
        std::hint::spin_loop();
    }
}
