//! The notes in SQLite. Each call is a job on a worker thread, one at a time.

use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use rusqlite::{Connection, OptionalExtension, Row, params};
use serde::Serialize;
use traps::threads::Limiter;

/// A note of a user.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Note {
    pub id: i64,
    pub text: String,
}

/// The table of notes.
#[derive(Debug)]
pub struct Store {
    connection: Arc<Mutex<Connection>>,
    limiter: Limiter,
}

impl Store {
    /// Opens the file, and makes the table in it if there is none. `:memory:` is a new database in
    /// memory.
    pub fn open(path: &Path) -> io::Result<Store> {
        let connection = Connection::open(path).map_err(io::Error::other)?;
        let table = "CREATE TABLE IF NOT EXISTS notes
            (id INTEGER PRIMARY KEY, user TEXT NOT NULL, text TEXT NOT NULL)";
        connection.execute(table, ()).map_err(io::Error::other)?;
        // A connection runs one statement at a time, so more threads would only wait for the mutex.
        let limiter = Limiter::new("sqlite", 1);
        Ok(Store { connection: Arc::new(Mutex::new(connection)), limiter })
    }

    /// Runs `job` on a worker thread. If the caller is interrupted, the job still ends.
    async fn run<T: Send + 'static>(
        &self,
        job: impl FnOnce(&Connection) -> rusqlite::Result<T> + Send + 'static,
    ) -> io::Result<T> {
        let connection = self.connection.clone();
        let job = move || job(&connection.lock().expect("no statement panics"));
        self.limiter.run_in_thread(job).await?.map_err(io::Error::other)
    }

    pub async fn add(&self, user: &str, text: String) -> io::Result<Note> {
        let user = user.to_owned();
        let sql = "INSERT INTO notes (user, text) VALUES (?1, ?2) RETURNING id, text";
        self.run(move |db| db.query_row(sql, params![user, text], note)).await
    }

    /// Returns the notes of a user that contain `part`.
    pub async fn list(&self, user: &str, part: &str) -> io::Result<Vec<Note>> {
        let (user, part) = (user.to_owned(), part.to_owned());
        let sql = "SELECT id, text FROM notes WHERE user = ?1 AND instr(text, ?2) ORDER BY id";
        self.run(move |db| db.prepare(sql)?.query_map(params![user, part], note)?.collect()).await
    }

    pub async fn find(&self, user: &str, id: i64) -> io::Result<Option<Note>> {
        let user = user.to_owned();
        let sql = "SELECT id, text FROM notes WHERE user = ?1 AND id = ?2";
        self.run(move |db| db.query_row(sql, params![user, id], note).optional()).await
    }

    /// Removes a note. Returns whether there was one.
    pub async fn remove(&self, user: &str, id: i64) -> io::Result<bool> {
        let user = user.to_owned();
        let sql = "DELETE FROM notes WHERE user = ?1 AND id = ?2";
        self.run(move |db| Ok(db.execute(sql, params![user, id])? > 0)).await
    }
}

fn note(row: &Row<'_>) -> rusqlite::Result<Note> {
    Ok(Note { id: row.get(0)?, text: row.get(1)? })
}
