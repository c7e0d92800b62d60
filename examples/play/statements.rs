//! What each statement of the language does: an arm of [`begin`], with one call of [`traps`] if
//! the statement asks the kernel for something.
//!
//! Read `begin` first. Where it has `rest(sleep(time))`, an ordinary program has
//! `sleep(time).await?`. The step between is there for the log. `at=` in the log is the line of
//! the source that calls a function of `traps`, and in the log of a program it must be the line of
//! the program. So the functions of `traps` are called in `begin` itself, and not in an `async`
//! block, which runs later and somewhere else. `begin` has `#[track_caller]`, as they have, and is
//! called by a table that has one line for each line of a program: [`BEGIN`].
//!
//! For example, the statement `sleep 5` in line 9 runs in these steps: [`block`] takes function 9
//! of the table, which is line 9 of the file `program`; this line calls `begin`, which calls
//! `sleep`; `block` awaits the rest. When the task leaves the CPU, the log says
//! `block sleep 5ms .. at=program:9`.

use std::future::ready;
use std::io;
use std::pin::Pin;
use std::rc::Rc;

use traps::{clock, ignore_after, note, shield, sleep, spawn, yield_now};

use super::frame::{Frame, Variables};
use super::program::{Block, LINES, Statement, What};
use super::world::World;

/// The rest of a statement that has begun. Boxed, because each arm of [`begin`] has a future of
/// another type, and because a block contains statements that contain blocks.
type Rest<'a> = Pin<Box<dyn Future<Output = io::Result<()>> + 'a>>;

/// The rest of a statement, or what is wrong with it at this point of the run.
type Begun<'a> = Result<Rest<'a>, String>;

/// Begins a statement of the task whose frame is `me`.
#[track_caller]
fn begin<'a>(Statement { line, what }: &'a Statement, me: &'a Frame<'_>) -> Begun<'a> {
    let world = me.world;
    Ok(match what {
        // The CPU and the time.
        What::Sleep(time) => rest(sleep(me.duration(time)?)),
        What::Spin(time) => {
            (world.spin)(me.duration(time)?);
            // The kernel reads its clock once a turn, and when a task asks. If the task did not
            // ask, the log would show its work as no time at all.
            after(clock(), |_| Ok(()))
        }
        What::Yield => rest(yield_now()),
        What::Note(text) => {
            let text = me.filled(text)?;
            world.record_site(*line);
            note(text);
            done()
        }

        // Locks, bells and channels. Each wait can be interrupted. The `?` in `rest` then ends the
        // statement, and the blocks around it, with the interrupt as their error.
        What::Lock(name) => after(world.locks[name].lock(), |guard| {
            me.hold(guard?);
            Ok(())
        }),
        What::Unlock(name) => {
            me.unlock(name)?;
            done()
        }
        What::Wait(name) => rest(world.bells[name].wait()),
        What::Wake(name) => {
            world.record_site(*line);
            // If no task waits, the wake is lost: the queue of a bell keeps no permits.
            world.bells[name].wake(1);
            done()
        }
        What::Send(name, value) => rest(world.channels[name].put(me.value(value)?)),
        What::Recv(name, None) => after(world.channels[name].get(), move |value| {
            let value = value?;
            world.record_site(*line);
            note(format_args!("{name} gave {value}"));
            Ok(())
        }),
        What::Recv(name, Some(variable)) => after(world.channels[name].get(), |value| {
            me.set(variable, value?);
            Ok(())
        }),

        // Other tasks.
        What::Spawn(name, body) => {
            let child = task(name.clone(), me.variables(), body.clone(), world.clone());
            after(spawn(name.clone(), child), |task| {
                world.keep(name, task);
                Ok(())
            })
        }
        What::Join(name) => rest(world.task(name)?.wait()),
        // Waits for the end of the task too, because its clean-up may take time.
        What::Cancel(name) => rest(world.task(name)?.cancel()),

        // What ends a wait early, and what holds that back.
        What::Within(time, body, late) => {
            let within = ignore_after(me.duration(time)?, block(body, me));
            rest(async {
                match within.await? {
                    Some(()) => Ok(()),
                    None => block(late, me).await,
                }
            })
        }
        What::Shield(body) => rest(shield(block(body, me))),
        What::Try(body, finally) => rest(async {
            // An interrupt is an error, so a clean-up is plain Rust, and may wait.
            let ended = block(body, me).await;
            block(finally, me).await?;
            ended
        }),

        // No traps.
        What::If(test, yes, no) => rest(block(if me.is(test)? { yes } else { no }, me)),
        What::Repeat(count, body) => {
            let count = count.as_ref().map_or(Ok(i64::MAX), |count| me.value(count))?;
            rest(async move {
                for _ in 0..count {
                    block(body, me).await?;
                }
                io::Result::Ok(())
            })
        }
        What::While(test, body) => rest(async {
            while me.is(test).map_err(|why| world.problem(*line, why))? {
                block(body, me).await?;
            }
            io::Result::Ok(())
        }),
        What::Set(name, value) => {
            me.set(name, me.value(value)?);
            done()
        }
    })
}

/// Awaits this future and ignores its value. The error of a wait is an interrupt, and
/// [`io::Error`] can carry it.
fn rest<'a, T, E>(future: impl Future<Output = Result<T, E>> + 'a) -> Rest<'a>
where
    io::Error: From<E>,
{
    after(future, |result| {
        result?;
        Ok(())
    })
}

/// Awaits this future, and then uses its output.
fn after<'a, T>(
    future: impl Future<Output = T> + 'a,
    use_output: impl FnOnce(T) -> io::Result<()> + 'a,
) -> Rest<'a> {
    Box::pin(async { use_output(future.await) })
}

/// Awaits nothing: the statement is done.
fn done<'a>() -> Rest<'a> {
    Box::pin(ready(Ok(())))
}

/// A function for each line of a program. All do the same, but function N is line N of the file
/// `program`. It calls [`begin`], and therefore it is the call site that the log names.
static BEGIN: [for<'a> fn(&'a Statement, &'a Frame<'_>) -> Begun<'a>; LINES] = include!("program");

/// Runs the statements of a block in order. Its end unlocks what it has locked, as a Rust block
/// drops its guards.
async fn block(statements: &Block, me: &Frame<'_>) -> io::Result<()> {
    let _locks = me.locks_of_a_block();
    for statement in statements {
        let line = statement.line;
        me.world.count(line)?;
        let begun = BEGIN[line - 1](statement, me);
        begun.map_err(|why| me.world.problem(line, why))?.await?;
    }
    Ok(())
}

/// A task. It owns what it needs, because it may outlive the task that spawns it.
pub async fn task(name: String, variables: Variables, body: Rc<Block>, world: Rc<World>) {
    let me = Frame::new(name, variables, &world);
    // The log has the interrupt that ended the task, and the list of problems has the mistake.
    let _ = block(&body, &me).await;
}
