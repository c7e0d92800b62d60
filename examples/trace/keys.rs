//! `step` at a terminal: keys in, screens out.

use std::io::{self, IsTerminal, Write};
use std::panic;
use std::process::ExitCode;

use crossterm::cursor::{Hide, MoveTo, Show};
use crossterm::event::{self, Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use crossterm::terminal::{self, Clear, ClearType, EnterAlternateScreen, LeaveAlternateScreen};
use crossterm::{execute, queue};

use trace_tool::model::Trace;
use trace_tool::state::Walk;
use trace_tool::step::{Go, go, plain, screen};
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
    let mut walk = Walk::new(trace);
    walk.to(place);
    loop {
        // Some terminals do not know their size.
        let size = terminal::size().ok().filter(|size| size.0 > 0 && size.1 > 0);
        let (width, height) = size.unwrap_or((80, 24));
        let text = screen(trace, &walk, (width.into(), height.into()), paint);
        let mut out = io::stdout().lock();
        queue!(out, MoveTo(0, 0), Clear(ClearType::All))?;
        out.write_all(text.as_bytes())?;
        out.flush()?;
        match event::read()? {
            Event::Key(key) if key.kind != KeyEventKind::Release => match meaning(key) {
                Some(Meant::Go(way)) => walk.to(go(trace, walk.place(), way)),
                Some(Meant::End) => return Ok(()),
                None => {}
            },
            // For example, the size has changed. Draw again, so that the screen fits.
            _ => {}
        }
    }
}

enum Meant {
    Go(Go),
    End,
}

fn meaning(key: KeyEvent) -> Option<Meant> {
    let is_control = key.modifiers.contains(KeyModifiers::CONTROL);
    Some(match key.code {
        // In raw mode, Ctrl-C is a key.
        KeyCode::Char('c') if is_control => Meant::End,
        KeyCode::Char('q') | KeyCode::Esc => Meant::End,
        KeyCode::Right | KeyCode::Char(' ' | 'l') => Meant::Go(Go::Line(1)),
        KeyCode::Left | KeyCode::Char('h') => Meant::Go(Go::Line(-1)),
        KeyCode::Down | KeyCode::Char('j') => Meant::Go(Go::Run(1)),
        KeyCode::Up | KeyCode::Char('k') => Meant::Go(Go::Run(-1)),
        KeyCode::PageDown => Meant::Go(Go::Turn(1)),
        KeyCode::PageUp => Meant::Go(Go::Turn(-1)),
        KeyCode::Home => Meant::Go(Go::First),
        KeyCode::End => Meant::Go(Go::Last),
        _ => return None,
    })
}
