//! The page *Finding a bug once* of the guide, checked against the project: its patch applies, a
//! loop of recordings catches the bug, and a replay with two notes shows it.

use std::cell::Cell;
use std::fs;
use std::io::{self, Read, Write};
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::rc::Rc;
use std::sync::{Arc, Barrier};
use std::thread;
use std::time::Duration;

use kernel::{Kernel, Options};
use net::{BufReader, Stream, TcpListener};
use testing::child;
use traps::channel::broadcast;
use traps::{Either, note, race, spawn};

const RECORDINGS: usize = 2000;

#[test]
fn the_patch_of_the_guide_applies_to_the_chat() {
    let root = Path::new(support::root());
    let page = fs::read_to_string(root.join("kernel/src/guide/replay.md")).unwrap();
    let chat = fs::read_to_string(root.join("examples/servers/chat.rs")).unwrap();
    let patch = page.split("```diff\n").nth(1).unwrap().split("```").next().unwrap();
    // As a reader who tries it. It also works in a folder that is not a repository.
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("replay_patch");
    let file = folder.join("examples/servers/chat.rs");
    fs::create_dir_all(file.parent().unwrap()).unwrap();
    fs::write(&file, &chat).unwrap();
    fs::write(folder.join("page.diff"), patch).unwrap();
    let mut git = Command::new("git");
    // So that git does not use the repository around the folder.
    git.current_dir(&folder).env("GIT_DIR", folder.join("none")).args(["apply", "page.diff"]);
    let output = child::output(&mut git);
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    let patched = fs::read_to_string(&file).unwrap();
    assert!(patched.contains("SPEAKER.replace(name.clone());"), "{patched}");
    // The page adds notes to these lines.
    for added in page.split("```rust,ignore\n").skip(1) {
        let added = added.split("```").next().unwrap();
        let lines = added.lines().filter(|line| !line.contains("traps::note"));
        let kept: String = lines.map(|line| format!("{line}\n")).collect();
        assert!(patched.contains(&kept), "the patched chat has no\n{kept}");
    }
}

/// The chat of the page, for two clients: the last speaker receives no line. Returns how many lines
/// were lost by that.
async fn chat(tell: impl Fn(SocketAddr), notes: bool) -> io::Result<u32> {
    let mut listener = TcpListener::bind("127.0.0.1:0")?;
    tell(listener.local_addr()?);
    let (room, _) = broadcast::channel::<u8>(100);
    let (speaker, lost) = (Rc::new(Cell::new(0)), Rc::new(Cell::new(0)));
    let mut clients = Vec::new();
    for name in 1..=2_u8 {
        let (mut stream, _) = listener.accept().await?;
        let (room, speaker, lost) = (room.clone(), speaker.clone(), lost.clone());
        let mut news = room.subscribe();
        let client = async move {
            let (reader, mut writer) = stream.split();
            let mut reader = BufReader::new(reader);
            let mut lines = reader.lines(100);
            let speak = async {
                while lines.next().await?.is_some() {
                    if notes {
                        note(format!("{name} says"));
                    }
                    speaker.set(name);
                    room.send(name)?;
                }
                io::Result::Ok(())
            };
            let hear = async {
                loop {
                    let said = news.recv().await?;
                    if speaker.get() == name {
                        if notes {
                            note(format!("{name} skips {said}"));
                        }
                        lost.set(lost.get() + u32::from(said != name));
                        continue;
                    }
                    writer.write_all(&[b'0' + said]).await?;
                }
            };
            let (Either::Left(ended) | Either::Right(ended)) = race(speak, hear).await;
            ended
        };
        clients.push(spawn(format!("client-{name}"), client).await);
    }
    for mut client in clients {
        client.join().await.unwrap()?;
    }
    Ok(lost.get())
}

/// Sends a line when the other client has connected too, and leaves when it has received one, or
/// has waited for a while.
fn client(addr: SocketAddr, there: &Barrier) {
    let mut stream = TcpStream::connect(addr).unwrap();
    stream.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
    there.wait();
    stream.write_all(b"hello\n").unwrap();
    let _ = stream.read(&mut [0]);
    there.wait();
    // This fails if the server has closed the connection.
    let _ = stream.shutdown(Shutdown::Write);
}

/// Records a run. Returns how many lines were lost.
fn record(path: &Path) -> u32 {
    let mut kernel = Kernel::record_to(path, Options::new()).unwrap();
    let (tell, told) = std::sync::mpsc::channel();
    let clients = thread::spawn(move || {
        let (addr, there) = (told.recv().unwrap(), Arc::new(Barrier::new(2)));
        let other = there.clone();
        let other = thread::spawn(move || client(addr, &other));
        client(addr, &there);
        other.join().unwrap();
    });
    let lost = kernel.run(chat(move |addr| tell.send(addr).unwrap(), false)).unwrap();
    kernel.shutdown().unwrap();
    drop(kernel);
    clients.join().unwrap();
    // For example, a client has left too soon.
    lost.unwrap_or(0)
}

#[test]
fn a_rare_loss_is_caught_by_a_loop_of_recordings_and_seen_by_two_notes() {
    let path = PathBuf::from(env!("CARGO_TARGET_TMPDIR")).join("lost.record");
    let caught = (0..RECORDINGS).any(|_| record(&path) > 0);
    assert!(caught, "no line was lost in {RECORDINGS} runs");
    let replayed = testing::replay(&path, chat(|_| (), true));
    assert!(replayed.output.unwrap() > 0);
    let notes: Vec<&str> = replayed.trace.lines().filter(|line| line.contains(" note ")).collect();
    let said = |note: &str| notes.iter().position(|line| line.ends_with(note));
    // The client that lost a line had spoken before its task handled the line.
    let lost = [(1, 2), (2, 1)].into_iter().find_map(|(loser, other)| {
        Some((said(&format!("{loser} says"))?, said(&format!("{loser} skips {other}"))?))
    });
    let (says, skips) = lost.unwrap_or_else(|| panic!("{notes:#?}"));
    assert!(says < skips, "{notes:#?}");
}
