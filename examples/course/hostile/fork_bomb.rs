// failed: your program has more than 64 processes and threads
fn harm() {
    // 127 processes, even if nothing stops it.
    let depth = std::env::var("DEPTH").ok().and_then(|depth| depth.parse().ok()).unwrap_or(0);
    let program = std::env::current_exe().unwrap();
    for _ in 0..if depth < 6 { 2 } else { 0 } {
        let mut child = std::process::Command::new(&program);
        child.env("DEPTH", (depth + 1).to_string()).spawn().unwrap();
    }
    std::thread::sleep(std::time::Duration::from_secs(60));
}
