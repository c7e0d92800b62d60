// passed
fn harm() {
    let script = "setsid sh -c 'setsid sleep MARK & exit' & exit";
    std::process::Command::new("setsid").args(["sh", "-c", script]).status().unwrap();
}
