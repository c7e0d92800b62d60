// passed
fn harm() {
    for folder in [".".to_owned(), std::env::var("HOME").unwrap(), std::env::var("TMPDIR").unwrap()]
    {
        for nth in 0..20 {
            std::fs::write(format!("{folder}/file-{nth}"), "MARK").unwrap();
        }
    }
}
