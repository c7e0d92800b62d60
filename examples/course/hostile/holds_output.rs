// passed
fn harm() {
    std::process::Command::new("sleep").arg("MARK").spawn().unwrap();
}
