//! The folders of labs, as their authors wrote them.

use std::fs;
use std::path::{Path, PathBuf};

/// The checkout that this program was built from.
pub fn root() -> &'static Path {
    let mut folders = Path::new(env!("CARGO_MANIFEST_DIR")).ancestors();
    folders.find(|folder| folder.join("Cargo.lock").exists()).expect("it lies in a checkout")
}

/// The number of scenarios in which each check runs a program.
pub const SCENARIOS: u64 = 20;

/// The files that the student writes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// `src/lab.rs`, on the real kernel.
    Program,
    /// `src/lab.rs`, on the mini-kernel of that step.
    Step(u32),
    /// `answer.txt`.
    Answer,
    /// Copies of the crates themselves.
    Patched,
}

impl Kind {
    /// In the words of `list`.
    pub fn named(self) -> String {
        match self {
            Kind::Program => "a program".to_owned(),
            Kind::Step(step) => format!("a program on step {step}"),
            Kind::Answer => "an answer".to_owned(),
            Kind::Patched => "a change of the kernel".to_owned(),
        }
    }
}

/// A folder of `labs/`.
#[derive(Clone, Debug)]
pub struct Lab {
    /// The number, from 1.
    pub number: u32,
    /// The folder: `16_fair`.
    pub name: String,
    /// The title of `lab.md`, without its number.
    pub title: String,
    /// The files that the student writes.
    pub kind: Kind,
    /// The path of the folder.
    pub folder: PathBuf,
}

impl Lab {
    fn read(folder: PathBuf) -> Result<Lab, String> {
        let name = folder.file_name().unwrap_or_default().to_string_lossy().into_owned();
        let number = name.split('_').next().and_then(|number| number.parse().ok());
        let number = number.ok_or_else(|| format!("{name}: expected a name such as 16_fair"))?;
        let text = fs::read_to_string(folder.join("lab.md"))
            .map_err(|error| format!("{name}/lab.md: {error}"))?;
        let first = text.lines().next().unwrap_or_default();
        let title = first.strip_prefix(&format!("# {number:02}. "));
        let title = title.ok_or_else(|| format!("{name}/lab.md: expected `# {number:02}. TITLE`"));
        let kind = match fs::read_to_string(folder.join("step")) {
            Ok(step) => {
                let step = step.trim().parse();
                Kind::Step(step.map_err(|_| format!("{name}/step: expected a number"))?)
            }
            Err(_) if folder.join("patch").exists() => Kind::Patched,
            Err(_) if folder.join("skeleton.txt").exists() => Kind::Answer,
            Err(_) => Kind::Program,
        };
        Ok(Lab { number, name, title: title?.to_owned(), kind, folder })
    }

    /// The text of one of its files; empty if it has no such file.
    pub fn text(&self, file: &str) -> String {
        fs::read_to_string(self.folder.join(file)).unwrap_or_default()
    }

    /// The ending of the names of solutions.
    pub fn ending(&self) -> &'static str {
        match self.kind {
            Kind::Program | Kind::Step(_) => "rs",
            Kind::Answer => "txt",
            Kind::Patched => "patch",
        }
    }

    /// What the student writes, from the student's folder.
    pub fn written(&self) -> PathBuf {
        PathBuf::from(match self.kind {
            Kind::Program | Kind::Step(_) => "src/lab.rs".to_owned(),
            Kind::Answer => "answer.txt".to_owned(),
            Kind::Patched => self.text("patch").lines().next().unwrap_or_default().to_owned(),
        })
    }

    /// `lab.md` without the hints.
    pub fn task(&self) -> String {
        let text = self.text("lab.md");
        text.split("\n## Hint ").next().unwrap_or_default().trim_end().to_owned() + "\n"
    }

    /// The hints, in their order.
    pub fn hints(&self) -> Vec<String> {
        let text = self.text("lab.md");
        let hints = text.split("\n## Hint ").skip(1);
        let body =
            |hint: &str| hint.split_once('\n').map_or("", |(_, body)| body).trim().to_owned();
        hints.map(body).collect()
    }

    /// Whether its program runs in scenarios that differ.
    pub fn has_scenarios(&self) -> bool {
        self.folder.join("scenario.rs").exists()
    }

    /// The seeds of the scenarios in which a program is judged: 0 for the page, 1 for a scenario
    /// that is written by hand, and the others for drawn ones. Each check has the same seeds, so
    /// that no program fails in one check and passes in the next. `extra` is the seed of a scenario
    /// that no student can prepare for.
    pub fn scenarios(&self, extra: Option<u64>) -> Vec<u64> {
        if self.has_scenarios() { (0..SCENARIOS).chain(extra).collect() } else { vec![0] }
    }

    /// The names of its wrong solutions, `wrong_1` first, or those of its further right solutions,
    /// `right_1` first.
    pub fn others(&self, which: &str) -> Vec<String> {
        let names = (1..).map(|nth| format!("{which}_{nth}"));
        let is_there =
            |name: &String| self.folder.join(name).with_extension(self.ending()).exists();
        names.take_while(is_there).collect()
    }
}

/// All labs, by their numbers.
pub fn all() -> Result<Vec<Lab>, String> {
    let folder = root().join("examples/course/labs");
    let entries =
        fs::read_dir(&folder).map_err(|error| format!("{}: {error}", folder.display()))?;
    let mut labs = Vec::new();
    for entry in entries {
        let path = entry.map_err(|error| error.to_string())?.path();
        if path.is_dir() {
            labs.push(Lab::read(path)?);
        }
    }
    labs.sort_by_key(|lab| lab.number);
    Ok(labs)
}

/// The lab with that number.
pub fn find(number: u32) -> Result<Lab, String> {
    let labs = all()?;
    let numbers: Vec<String> = labs.iter().map(|lab| lab.number.to_string()).collect();
    let found = labs.into_iter().find(|lab| lab.number == number);
    found.ok_or_else(|| {
        format!("there is no lab {number}; `list` shows the labs: {}", numbers.join(", "))
    })
}
