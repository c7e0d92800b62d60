// failed: your program has more than 64 processes and threads
fn harm() {
    let sleep = || std::thread::sleep(std::time::Duration::from_secs(60));
    for thread in (0..100).map(|_| std::thread::spawn(sleep)).collect::<Vec<_>>() {
        thread.join().unwrap();
    }
}
