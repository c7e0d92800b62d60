//! `step` at a terminal: keys in, screens out.

use std::io::{self, IsTerminal, Write};
use std::panic;
use std::process::ExitCode;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEventKind, KeyModifiers};
use crossterm::terminal::{self, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{execute, queue};

use trace_tool::debugger::{Debugger, Key};
use trace_tool::model::Trace;
use trace_tool::step::{Go, plain};
use trace_tool::style::Paint;

/// Walks through a trace from a place on. Without a terminal, prints the trace.
///
/// # Errors
///
/// Returns those of the terminal or of standard output.
pub fn step(trace: &Trace, place: usize, paint: Paint) -> io::Result<ExitCode> {
    if !io::stdin().is_terminal() || !io::stdout().is_terminal() {
        let mut out = io::BufWriter::new(io::stdout().lock());
        plain(trace, |text| out.write_all(text.as_bytes()))?;
        out.flush()?;
        return Ok(ExitCode::SUCCESS);
    }
    let screen = Screen::take()?;
    let walked = walk(trace, place, paint);
    drop(screen);
    walked.map(|()| ExitCode::SUCCESS)
}

/// The terminal in raw mode. Dropping this restores it.
struct Screen;

impl Screen {
    fn take() -> io::Result<Screen> {
        // A panic prints its message, so the terminal must have been restored by then.
        let before = panic::take_hook();
        panic::set_hook(Box::new(move |what| {
            restore();
            before(what);
        }));
        terminal::enable_raw_mode()?;
        let screen = Screen;
        execute!(io::stdout(), EnterAlternateScreen, Hide)?;
        Ok(screen)
    }
}

impl Drop for Screen {
    fn drop(&mut self) {
        restore();
    }
}

/// Restores the terminal. Does nothing if the terminal has gone.
fn restore() {
    drop(execute!(io::stdout(), Show, LeaveAlternateScreen));
    drop(terminal::disable_raw_mode());
}

fn walk(trace: &Trace, place: usize, paint: Paint) -> io::Result<()> {
    let mut debugger = Debugger::new(trace, place);
    loop {
        // Some terminals do not know their size.
        let size = terminal::size().ok().filter(|size| size.0 > 0 && size.1 > 0);
        let (width, height) = size.unwrap_or((80, 24));
        let text = debugger.screen((width.into(), height.into()), paint);
        let mut out = io::stdout().lock();
        queue!(out, MoveTo(0, 0), Clear(ClearType::All))?;
        out.write_all(text.as_bytes())?;
        out.flush()?;
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => {
                let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
                // In raw mode, Ctrl-C is a key.
                if is_control && key.code == KeyCode::Char('c') {
                    return Ok(());
                }
                // Ctrl-D ends the input, and so the prompt or the session.
                let key = match key.code {
                    KeyCode::Char('d') if is_control => Some(Key::Escape),
                    KeyCode::Char(_) if is_control => None,
                    code => meaning(code),
                };
                let continues = key.is_none_or(|key| debugger.key(key));
                if !continues {
                    return Ok(());
                }
            }
            // For example, the size has changed. Draw again, so that the screen fits.
            _ => {}
        }
    }
}

fn meaning(code: KeyCode) -> Option<Key> {
    Some(match code {
        KeyCode::Right => Key::Go(Go::Line(1)),
        KeyCode::Left => Key::Go(Go::Line(-1)),
        KeyCode::Down => Key::Go(Go::Run(1)),
        KeyCode::Up => Key::Go(Go::Run(-1)),
        KeyCode::PageDown => Key::Go(Go::Turn(1)),
        KeyCode::PageUp => Key::Go(Go::Turn(-1)),
        KeyCode::Home => Key::Go(Go::First),
        KeyCode::End => Key::Go(Go::Last),
        KeyCode::Enter => Key::Enter,
        KeyCode::Backspace => Key::Back,
        KeyCode::Esc => Key::Escape,
        KeyCode::Char(c) => Key::Char(c),
        _ => return None,
    })
}
