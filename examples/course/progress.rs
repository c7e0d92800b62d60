//! The progress of a student. The folder of a lab keeps it, in the file `passed`.

use std::fs;
use std::hash::{DefaultHasher, Hash, Hasher};
use std::path::Path;

use course::labs::{Kind, Lab};
use course::student;

/// A fingerprint of the student's present work.
pub fn fingerprint(lab: &Lab, folder: &Path) -> Result<u64, String> {
    let mut hasher = DefaultHasher::new();
    if lab.kind == Kind::Patched {
        for (name, _) in student::CRATES {
            hash_folder(&folder.join(name).join("src"), &mut hasher)?;
        }
    }
    for file in ["src/lab.rs", "answer.txt"] {
        fs::read(folder.join(file)).ok().hash(&mut hasher);
    }
    Ok(hasher.finish())
}

fn hash_folder(folder: &Path, hasher: &mut impl Hasher) -> Result<(), String> {
    for name in student::entries(folder)? {
        let path = folder.join(&name);
        name.hash(hasher);
        if path.is_dir() {
            hash_folder(&path, hasher)?;
        } else {
            fs::read(&path).ok().hash(hasher);
        }
    }
    Ok(())
}

/// Notes that the work in a folder has passed, as it was at the time of that fingerprint.
pub fn note(folder: &Path, passed: u64) -> Result<(), String> {
    student::put(&folder.join("passed"), format!("{passed:016x}\n"))
}

/// The state of a lab, for `list`.
pub fn state(lab: &Lab, folder: &Path) -> String {
    let place = folder.display();
    if !folder.is_dir() {
        return "not started".to_owned();
    }
    let Ok(passed) = fs::read_to_string(folder.join("passed")) else {
        return format!("started in {place}");
    };
    let now = fingerprint(lab, folder).map(|now| format!("{now:016x}"));
    match now.is_ok_and(|now| now == passed.trim()) {
        true => format!("passed, in {place}"),
        false => format!("passed, but changed since, in {place}"),
    }
}
