//! "Your own program" in the guide compiles, and does what it says.

use std::time::Duration;
use traps::{Error, Interrupt, sleep, spawn};

async fn program() -> Result<&'static str, Error> {
    let mut child = spawn("child", async {
        sleep(Duration::from_secs(1)).await?;
        Ok::<_, Interrupt>("a second later")
    })
    .await;
    Ok(child.join().await??) // the join's error, and the child's
}

fn main() -> Result<(), Box<dyn std::error::Error>> {
    println!("{}", kernel::run(program())??); // the kernel's error, and the program's
    Ok(())
}

const PAGE: &str = include_str!("../kernel/src/guide/start.md");

/// The block behind that remark.
fn block(remark: &str) -> &'static str {
    let block = PAGE.split(remark).nth(1).expect("it is there").split("```").nth(1).unwrap();
    block.split_once('\n').unwrap().1
}

#[test]
fn the_program_of_the_guide_is_the_one_above() {
    assert!(
        include_str!("own_program.rs").contains(block("<!-- program: tests/own_program.rs -->"))
    );
    let mut kernel = kernel::Kernel::new(kernel::Sim::new());
    assert_eq!(kernel.run(program()).unwrap().unwrap(), "a second later");
}

#[test]
fn the_packages_of_the_guide_are_called_so() {
    let manifest = block("## Your own program");
    let packages = [
        ("traps", include_str!("../traps/Cargo.toml")),
        ("kernel", include_str!("../kernel/Cargo.toml")),
        ("net", include_str!("../net/Cargo.toml")),
    ];
    for (name, package) in packages {
        let named = format!("trapline-{name}");
        assert!(package.contains(&format!("name = \"{named}\"\n")), "{named}");
        let path = format!("path = \"../trapline/{name}\"");
        let line = format!("{name} = {{ package = \"{named}\", {path} }}");
        assert!(manifest.contains(&line), "{line}");
    }
}
