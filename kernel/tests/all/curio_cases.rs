//! Curio's worked cases of nested timeouts, by their numbers, as trapline decides them.
//!
//! The unit is 0.1 s. Levels are written from the inside out: `L1` is the outermost timeout. Each
//! has a result: `ok`, `ok(expired)` of an `ignore_after`, `TT` TaskTimeout, `TCE`
//! TimeoutCancellation, `UTE` UncaughtTimeout. The log of each is
//! `tests/golden/curio_case_NN.trace`.

use std::pin::Pin;
use std::time::Duration;

use kernel::{Sim, SimClock};
use support::{Notes, Ran, check, ms, short, short_kind, tenths};
use traps::io::{Io, Scripted};
use traps::sync::Event;
use traps::{
    Error, Interrupt, Interruptible, Time, ignore_after, shield, sleep, spawn, timeout_after,
    timeout_at,
};

/// An application's error.
#[derive(Debug)]
enum Fault {
    Interrupted(Interrupt),
    Value,
}

impl From<Interrupt> for Fault {
    fn from(interrupt: Interrupt) -> Fault {
        Fault::Interrupted(interrupt)
    }
}

impl Interruptible for Fault {
    fn interrupt(&self) -> Option<&Interrupt> {
        match self {
            Fault::Interrupted(interrupt) => Some(interrupt),
            Fault::Value => None,
        }
    }
    fn interrupt_mut(&mut self) -> Option<&mut Interrupt> {
        match self {
            Fault::Interrupted(interrupt) => Some(interrupt),
            Fault::Value => None,
        }
    }
}

type Output = Result<(), Fault>;
type Program = Pin<Box<dyn Future<Output = Output>>>;

fn word(output: &Output) -> &'static str {
    match output {
        Ok(()) => "ok",
        Err(Fault::Interrupted(why)) => short_kind(why.kind()),
        Err(Fault::Value) => "ValueError",
    }
}

/// Builds a program, and records the result of each level, innermost first.
struct Levels {
    heard: Notes,
    clock: SimClock,
}

impl Levels {
    fn level(&self, future: impl Future<Output = (Output, bool)> + 'static) -> Program {
        let heard = self.heard.clone();
        Box::pin(async move {
            let (output, expired) = future.await;
            heard.add(if expired { "ok(expired)" } else { word(&output) });
            output
        })
    }

    /// `timeout_after`.
    #[track_caller]
    fn after(&self, n: u64, inner: Program) -> Program {
        let limited = timeout_after(tenths(n), inner);
        self.level(async move { (limited.await, false) })
    }

    /// `timeout_after(None)`.
    #[track_caller]
    fn unlimited(&self, inner: Program) -> Program {
        let limited = timeout_after(None, inner);
        self.level(async move { (limited.await, false) })
    }

    /// `timeout_at`.
    #[track_caller]
    fn at(&self, n: u64, inner: Program) -> Program {
        let limited = timeout_at(Time::ZERO + tenths(n), inner);
        self.level(async move { (limited.await, false) })
    }

    /// `ignore_after`.
    #[track_caller]
    fn ignore(&self, n: u64, inner: Program) -> Program {
        let limited = ignore_after(tenths(n), inner);
        self.level(async move {
            let result = limited.await;
            let expired = matches!(result, Ok(None));
            (result.map(|_| ()), expired)
        })
    }

    /// Handles every error of `inner`.
    fn caught(&self, inner: Program) -> Program {
        Box::pin(async move {
            let _ = inner.await;
            Ok(())
        })
    }

    /// "op n".
    #[track_caller]
    fn op(&self, n: u64) -> Program {
        let sleep = sleep(tenths(n));
        Box::pin(async move { Ok(sleep.await.map(|_| ())?) })
    }

    /// "CPU n", in hundredths of a second, then the rest.
    fn cpu(&self, n: u64, then: Program) -> Program {
        let clock = self.clock.clone();
        Box::pin(async move {
            clock.advance(ms(10 * n));
            then.await
        })
    }

    /// No await.
    fn nothing(&self) -> Program {
        Box::pin(async { Ok(()) })
    }
}

/// A case that ran: the result of each level, and that of the run.
struct Case {
    levels: String,
    ran: Ran<Output>,
}

impl Case {
    #[track_caller]
    fn on(sim: Sim, name: &str, program: impl FnOnce(&Levels) -> Program) -> Case {
        let levels = Levels { heard: Notes::default(), clock: sim.clock() };
        let ran = check(name, sim, program(&levels));
        let heard = levels.heard.text();
        let depth = heard.split_whitespace().count();
        let numbered = heard.split_whitespace().enumerate();
        let numbered: Vec<_> = numbered.map(|(i, word)| format!("L{}:{word}", depth - i)).collect();
        Case { levels: numbered.join(" "), ran }
    }

    #[track_caller]
    fn of(name: &str, program: impl FnOnce(&Levels) -> Program) -> Case {
        Case::on(Sim::new(), name, program)
    }

    /// Asserts the results of the levels and of the run, the time in 0.01 s, the late warnings.
    #[track_caller]
    fn gave(&self, levels: &str, run: &str, took: u64, late: usize) {
        let took = ms(10 * took);
        let gave = (self.levels.as_str(), word(&self.ran.output), self.ran.took);
        assert_eq!(gave, (levels, run, took), "\n{}", self.ran.trace);
        assert_eq!(self.ran.count("late"), late, "late warnings\n{}", self.ran.trace);
    }
}

/// Returns a machine whose clock is at one second, so that earlier times are "negative seconds".
fn at_one_second() -> Sim {
    Sim::starting_at(Time::ZERO + Duration::from_secs(1))
}

/// [+5] op 20.
#[test]
fn curio_case_01() {
    let case = Case::of("curio_case_01", |c| c.after(5, c.op(20)));
    case.gave("L1:TT", "TT", 50, 0);
}

/// [+5] op 1.
#[test]
fn curio_case_02() {
    let case = Case::of("curio_case_02", |c| c.after(5, c.op(1)));
    case.gave("L1:ok", "ok", 10, 0);
}

/// [+2,+5] op 20.
#[test]
fn curio_case_03() {
    let case = Case::of("curio_case_03", |c| c.after(2, c.after(5, c.op(20))));
    case.gave("L2:TCE L1:TT", "TT", 20, 0);
}

/// [+5,+2] op 20.
#[test]
fn curio_case_04() {
    let case = Case::of("curio_case_04", |c| c.after(5, c.after(2, c.op(20))));
    case.gave("L2:TT L1:UTE", "UTE", 20, 0);
}

/// [+5,+2] op 20, L2 caught.
#[test]
fn curio_case_05() {
    let case = Case::of("curio_case_05", |c| c.after(5, c.caught(c.after(2, c.op(20)))));
    case.gave("L2:TT L1:ok", "ok", 20, 0);
}

/// [+5,+6,+7] op 20.
#[test]
fn curio_case_06() {
    let case = Case::of("curio_case_06", |c| c.after(5, c.after(6, c.after(7, c.op(20)))));
    case.gave("L3:TCE L2:TCE L1:TT", "TT", 50, 0);
}

/// [+5,+4,+7] op 20.
#[test]
fn curio_case_07() {
    let case = Case::of("curio_case_07", |c| c.after(5, c.after(4, c.after(7, c.op(20)))));
    case.gave("L3:TCE L2:TT L1:UTE", "UTE", 40, 0);
}

/// [+5,+6,+4,+7,+8] op 20.
#[test]
fn curio_case_08() {
    let case = Case::of("curio_case_08", |c| {
        c.after(5, c.after(6, c.after(4, c.after(7, c.after(8, c.op(20))))))
    });
    case.gave("L5:TCE L4:TCE L3:TT L2:UTE L1:UTE", "UTE", 40, 0);
    assert_eq!(case.ran.count("deliver"), 1, "one delivery, relabelled on its way");
}

/// [+5,+6,+4,+7,+8] op 20, L3 caught.
#[test]
fn curio_case_09() {
    let case = Case::of("curio_case_09", |c| {
        c.after(5, c.after(6, c.caught(c.after(4, c.after(7, c.after(8, c.op(20)))))))
    });
    case.gave("L5:TCE L4:TCE L3:TT L2:ok L1:ok", "ok", 40, 0);
}

/// [+7,+5,+3] op 20.
#[test]
fn curio_case_10() {
    let case = Case::of("curio_case_10", |c| c.after(7, c.after(5, c.after(3, c.op(20)))));
    case.gave("L3:TT L2:UTE L1:UTE", "UTE", 30, 0);
}

/// [+7,+5,+3] op 20, L3 caught, then nothing.
#[test]
fn curio_case_11() {
    let case =
        Case::of("curio_case_11", |c| c.after(7, c.after(5, c.caught(c.after(3, c.op(20))))));
    case.gave("L3:TT L2:ok L1:ok", "ok", 30, 0);
}

/// [+4,+4] op 20.
#[test]
fn curio_case_12() {
    let case = Case::of("curio_case_12", |c| c.after(4, c.after(4, c.op(20))));
    case.gave("L2:TCE L1:TT", "TT", 40, 0);
}

/// [+4,+4,+4] op 20.
#[test]
fn curio_case_13() {
    let case = Case::of("curio_case_13", |c| c.after(4, c.after(4, c.after(4, c.op(20)))));
    case.gave("L3:TCE L2:TCE L1:TT", "TT", 40, 0);
}

/// [+5,+4] CPU 6, then op 1: both have passed when it is delivered. Curio: L2 TCE.
#[test]
fn curio_case_14() {
    let case = Case::of("curio_case_14", |c| c.after(5, c.after(4, c.cpu(60, c.op(1)))));
    case.gave("L2:TT L1:TT", "TT", 60, 0);
}

/// [+6,+5,+4] CPU 5.5, then op 1. Curio: L3 TCE.
#[test]
fn curio_case_15() {
    let case =
        Case::of("curio_case_15", |c| c.after(6, c.after(5, c.after(4, c.cpu(55, c.op(1))))));
    case.gave("L3:TT L2:TT L1:UTE", "UTE", 55, 0);
}

/// [+4,+5] CPU 6, then op 1.
#[test]
fn curio_case_16() {
    let case = Case::of("curio_case_16", |c| c.after(4, c.after(5, c.cpu(60, c.op(1)))));
    case.gave("L2:TCE L1:TT", "TT", 60, 0);
}

/// [+4] CPU 6, no await.
#[test]
fn curio_case_17() {
    let case = Case::of("curio_case_17", |c| c.after(4, c.cpu(60, c.nothing())));
    case.gave("L1:ok", "ok", 60, 1);
}

/// [+5,+4] CPU 6, no await.
#[test]
fn curio_case_18() {
    let case = Case::of("curio_case_18", |c| c.after(5, c.after(4, c.cpu(60, c.nothing()))));
    case.gave("L2:ok L1:ok", "ok", 60, 2);
}

/// [0] op 1.
#[test]
fn curio_case_19() {
    let case = Case::of("curio_case_19", |c| c.after(0, c.op(1)));
    case.gave("L1:TT", "TT", 0, 0);
}

/// [0] op 0.
#[test]
fn curio_case_20() {
    let case = Case::of("curio_case_20", |c| c.after(0, c.op(0)));
    case.gave("L1:ok", "ok", 0, 1);
}

/// [0] no await.
#[test]
fn curio_case_21() {
    let case = Case::of("curio_case_21", |c| c.after(0, c.nothing()));
    case.gave("L1:ok", "ok", 0, 1);
}

/// [-1] op 1.
#[test]
fn curio_case_22() {
    let case = Case::on(at_one_second(), "curio_case_22", |c| c.at(9, c.op(1)));
    case.gave("L1:TT", "TT", 0, 0);
}

/// [-1] op 0.
#[test]
fn curio_case_23() {
    let case = Case::on(at_one_second(), "curio_case_23", |c| c.at(9, c.op(0)));
    case.gave("L1:ok", "ok", 0, 1);
}

/// [-1] no await.
#[test]
fn curio_case_24() {
    let case = Case::on(at_one_second(), "curio_case_24", |c| c.at(9, c.nothing()));
    case.gave("L1:ok", "ok", 0, 1);
}

/// [+5,-1] op 1.
#[test]
fn curio_case_25() {
    let case = Case::on(at_one_second(), "curio_case_25", |c| c.after(5, c.at(9, c.op(1))));
    case.gave("L2:TT L1:UTE", "UTE", 0, 0);
}

/// [-1,+5] op 1.
#[test]
fn curio_case_26() {
    let case = Case::on(at_one_second(), "curio_case_26", |c| c.at(9, c.after(5, c.op(1))));
    case.gave("L2:TCE L1:TT", "TT", 0, 0);
}

/// [None] op 1.
#[test]
fn curio_case_27() {
    let case = Case::of("curio_case_27", |c| c.unlimited(c.op(1)));
    case.gave("L1:ok", "ok", 10, 0);
}

/// [+3,None] op 1.
#[test]
fn curio_case_28() {
    let case = Case::of("curio_case_28", |c| c.after(3, c.unlimited(c.op(1))));
    case.gave("L2:ok L1:ok", "ok", 10, 0);
}

/// [+3,None] op 9.
#[test]
fn curio_case_29() {
    let case = Case::of("curio_case_29", |c| c.after(3, c.unlimited(c.op(9))));
    case.gave("L2:TCE L1:TT", "TT", 30, 0);
}

/// [None,+3] op 1.
#[test]
fn curio_case_30() {
    let case = Case::of("curio_case_30", |c| c.unlimited(c.after(3, c.op(1))));
    case.gave("L2:ok L1:ok", "ok", 10, 0);
}

/// [None,+3] op 9.
#[test]
fn curio_case_31() {
    let case = Case::of("curio_case_31", |c| c.unlimited(c.after(3, c.op(9))));
    case.gave("L2:TT L1:UTE", "UTE", 30, 0);
}

/// [+3,None,+5] op 9.
#[test]
fn curio_case_32() {
    let case = Case::of("curio_case_32", |c| c.after(3, c.unlimited(c.after(5, c.op(9)))));
    case.gave("L3:TCE L2:TCE L1:TT", "TT", 30, 0);
}

/// [+5,None,+3] op 9.
#[test]
fn curio_case_33() {
    let case = Case::of("curio_case_33", |c| c.after(5, c.unlimited(c.after(3, c.op(9)))));
    case.gave("L3:TT L2:UTE L1:UTE", "UTE", 30, 0);
}

/// [i+3] op 9.
#[test]
fn curio_case_34() {
    let case = Case::of("curio_case_34", |c| c.ignore(3, c.op(9)));
    case.gave("L1:ok(expired)", "ok", 30, 0);
}

/// [i+3] op 1.
#[test]
fn curio_case_35() {
    let case = Case::of("curio_case_35", |c| c.ignore(3, c.op(1)));
    case.gave("L1:ok", "ok", 10, 0);
}

/// [+5,i+3] op 9.
#[test]
fn curio_case_36() {
    let case = Case::of("curio_case_36", |c| c.after(5, c.ignore(3, c.op(9))));
    case.gave("L2:ok(expired) L1:ok", "ok", 30, 0);
}

/// [+3,i+5] op 9.
#[test]
fn curio_case_37() {
    let case = Case::of("curio_case_37", |c| c.after(3, c.ignore(5, c.op(9))));
    case.gave("L2:TCE L1:TT", "TT", 30, 0);
}

/// [i+3,+5] op 9.
#[test]
fn curio_case_38() {
    let case = Case::of("curio_case_38", |c| c.ignore(3, c.after(5, c.op(9))));
    case.gave("L2:TCE L1:ok(expired)", "ok", 30, 0);
}

/// [i+5,+3] op 9.
#[test]
fn curio_case_39() {
    let case = Case::of("curio_case_39", |c| c.ignore(5, c.after(3, c.op(9))));
    case.gave("L2:TT L1:UTE", "UTE", 30, 0);
}

/// [i+4,i+4] op 9.
#[test]
fn curio_case_40() {
    let case = Case::of("curio_case_40", |c| c.ignore(4, c.ignore(4, c.op(9))));
    case.gave("L2:TCE L1:ok(expired)", "ok", 40, 0);
}

// ---- Sequences -----------------------------------------------------------------------------

/// Records outcomes, with the clock in hundredths of a second, and reads it without a trap.
#[derive(Clone)]
struct Heard {
    notes: Notes,
    clock: SimClock,
}

impl Heard {
    fn by(sim: &Sim) -> Heard {
        Heard { notes: Notes::default(), clock: sim.clock() }
    }

    fn outcome<T>(&self, what: &str, result: &Result<T, Interrupt>) {
        self.word(what, short(result));
    }

    fn word(&self, what: &str, word: &str) {
        let now = self.clock.now().as_micros() / 10_000;
        self.notes.add(format!("{what}:{word}@{now}"));
    }
}

#[track_caller]
fn op(n: u64) -> traps::Sleep {
    sleep(tenths(n))
}

/// Outer 0.5, inner 0.2 caught outside its block, then op 10 inside outer.
#[test]
fn curio_case_41() {
    let sim = Sim::new();
    let heard = Heard::by(&sim);
    let ran = check("curio_case_41", sim, async {
        let outer = timeout_after(tenths(5), async {
            let inner = timeout_after(tenths(2), op(10)).await;
            heard.outcome("inner", &inner);
            op(10).await
        });
        heard.outcome("outer", &outer.await);
    });
    assert_eq!(heard.notes.text(), "inner:TT@20 outer:TT@50");
    assert_eq!(ran.count("late"), 0);
}

/// Outer 0.2, inner 0.5, caught outside the inner block; plain code; then op 0.3 ends at once.
#[test]
fn curio_case_42() {
    let sim = Sim::new();
    let heard = Heard::by(&sim);
    let ran = check("curio_case_42", sim, async {
        let outer = timeout_after(tenths(2), async {
            let inner = timeout_after(tenths(5), op(10)).await;
            heard.outcome("inner", &inner);
            heard.notes.add("plain");
            let next = op(3).await;
            heard.outcome("op", &next);
            next
        });
        heard.outcome("outer", &outer.await);
    });
    assert_eq!(heard.notes.text(), "inner:TCE@20 plain op:TT@20 outer:TT@20");
    assert_eq!(ran.count("late"), 0);
}

/// Outer 0.2, inner 0.5; swallowed inside the inner block, then op 0.3 ends with the inner
/// deadline, and wins. Curio: TT seen inside, and no deadline is armed any more.
#[test]
fn curio_case_43() {
    let sim = Sim::new();
    let heard = Heard::by(&sim);
    let ran = check("curio_case_43", sim, async {
        let outer = timeout_after(tenths(2), async {
            let inner = timeout_after(tenths(5), async {
                heard.outcome("inside", &op(10).await);
                let next = op(3).await;
                heard.outcome("op", &next);
                next
            });
            heard.outcome("inner", &inner.await);
            let next = op(3).await;
            heard.outcome("next", &next);
            next
        });
        heard.outcome("outer", &outer.await);
    });
    assert_eq!(heard.notes.text(), "inside:TCE@20 op:ok@50 inner:ok@50 next:TT@50 outer:TT@50");
    assert_eq!((ran.count("late"), ran.count("race")), (1, 1));
}

/// Outer 0.5, inner 0.2, swallowed inside; op 0.3 ties with outer and wins; the next op gets the
/// timeout, which propagates. Curio disarms the outer deadline and continues to 1.4.
#[test]
fn curio_case_44_propagated() {
    let sim = Sim::new();
    let heard = Heard::by(&sim);
    let ran = check("curio_case_44_propagated", sim, async {
        let outer = timeout_after(tenths(5), async {
            let inner = timeout_after(tenths(2), async {
                heard.outcome("op", &op(3).await);
                heard.outcome("op", &op(3).await);
                op(3).await
            });
            let inner = inner.await;
            heard.outcome("inner", &inner);
            inner
        });
        heard.outcome("outer", &outer.await);
    });
    assert_eq!(heard.notes.text(), "op:TT@20 op:ok@50 inner:TCE@50 outer:TT@50");
    assert_eq!((ran.count("late"), ran.count("race")), (0, 1));
}

/// Swallows the second interrupt of case 44 too: three more ops, a late warning, and the outer
/// deadline is delivered again at the first op outside the inner block.
#[test]
fn curio_case_44_swallowed() {
    let sim = Sim::new();
    let heard = Heard::by(&sim);
    let ran = check("curio_case_44_swallowed", sim, async {
        let outer = timeout_after(tenths(5), async {
            let inner = timeout_after(tenths(2), async {
                for _ in 0..6 {
                    heard.outcome("op", &op(3).await);
                }
                Ok::<_, Interrupt>(())
            });
            heard.outcome("inner", &inner.await);
            op(3).await
        });
        heard.outcome("outer", &outer.await);
    });
    let ops = "op:TT@20 op:ok@50 op:TCE@50 op:ok@80 op:ok@110 op:ok@140";
    assert_eq!(heard.notes.text(), format!("{ops} inner:ok@140 outer:TT@140"));
    assert_eq!((ran.count("late"), ran.count("race")), (1, 1));
    assert!(ran.trace.contains("over=1.2s"), "{}", ran.trace);
}

/// I/O is ready and the deadline passes in one turn: the data is returned, with a warning.
#[test]
fn curio_case_45() {
    let sim = Sim::new().ready_at(Time::ZERO + tenths(1), 1, traps::io::Direction::Read);
    let ran = check("curio_case_45", sim, async {
        let io = Io::new(Scripted(1));
        timeout_after(tenths(1), io.readable()).await
    });
    assert!(ran.output.is_ok());
    assert_eq!((ran.count("late"), ran.count("race")), (1, 1));
}

/// As 45, then another blocking op inside the block: the first has its data, the second times out.
#[test]
fn curio_case_46() {
    let sim = Sim::new().ready_at(Time::ZERO + tenths(1), 1, traps::io::Direction::Read);
    let heard = Heard::by(&sim);
    let ran = check("curio_case_46", sim, async {
        let io = Io::new(Scripted(1));
        let result = timeout_after(tenths(1), async {
            io.readable().await.expect("the data came first");
            heard.word("first", "ok");
            op(1).await
        });
        heard.outcome("block", &result.await);
    });
    assert_eq!(heard.notes.text(), "first:ok@10 block:TT@10");
    assert_eq!((ran.count("late"), ran.count("race")), (0, 1));
}

/// Sleep 0.1 in timeout 0.2, the loop is held up to 0.4: the earlier deadline comes first.
#[test]
fn curio_case_47() {
    let sim = Sim::new();
    let heard = Heard::by(&sim);
    let clock = sim.clock();
    let ran = check("curio_case_47", sim, async {
        let stall = async move { clock.advance(tenths(4)) };
        let mut stall = spawn("stall", stall).await;
        heard.outcome("block", &timeout_after(tenths(2), op(1)).await);
        stall.join().await.unwrap();
    });
    assert_eq!(heard.notes.text(), "block:ok@40");
    assert_eq!((ran.count("late"), ran.count("race")), (1, 1));
}

/// Timeout 0.1, sleep 0.2, the loop is held up to 0.4: the same the other way round.
#[test]
fn curio_case_48() {
    let sim = Sim::new();
    let heard = Heard::by(&sim);
    let clock = sim.clock();
    let ran = check("curio_case_48", sim, async {
        let stall = async move { clock.advance(tenths(4)) };
        let mut stall = spawn("stall", stall).await;
        heard.outcome("block", &timeout_after(tenths(1), op(2)).await);
        stall.join().await.unwrap();
    });
    assert_eq!(heard.notes.text(), "block:TT@40");
    assert_eq!((ran.count("late"), ran.count("race")), (0, 0));
}

/// An event is set by another task before the turn that would notice the deadline.
#[test]
fn curio_case_49() {
    let sim = Sim::new();
    let heard = Heard::by(&sim);
    let clock = sim.clock();
    let event = std::rc::Rc::new(Event::new());
    let ran = check("curio_case_49", sim, async {
        let setter = event.clone();
        let set = async move {
            clock.advance(tenths(4));
            setter.set();
        };
        let mut set = spawn("set", set).await;
        heard.outcome("block", &timeout_after(tenths(1), event.wait()).await);
        set.join().await.unwrap();
    });
    assert_eq!(heard.notes.text(), "block:ok@40");
    assert_eq!(ran.count("late"), 1);
}

/// Shielded op 0.2 in a timeout of 0.05; the shield ends inside the block, then `sleep(0)`: the op
/// completes, the `sleep(0)` times out.
#[test]
fn curio_case_50() {
    let sim = Sim::new();
    let heard = Heard::by(&sim);
    let ran = check("curio_case_50", sim, async {
        let block = timeout_after(ms(50), async {
            heard.outcome("op", &shield(op(2)).await);
            op(0).await
        });
        heard.outcome("block", &block.await);
    });
    assert_eq!(heard.notes.text(), "op:ok@20 block:TT@20");
    assert_eq!(ran.count("late"), 0);
}

/// A shield around the whole timeout block does not hold back what was opened inside it. Curio's
/// mask does.
#[test]
fn curio_case_51() {
    let sim = Sim::new();
    let heard = Heard::by(&sim);
    let ran = check("curio_case_51", sim, async {
        heard.outcome("block", &shield(timeout_after(ms(50), op(2))).await);
    });
    assert_eq!(heard.notes.text(), "block:TT@5");
    assert_eq!(ran.count("late"), 0);
}

/// The body fails with an error of its own after the deadline has passed, and never parked.
#[test]
fn curio_case_52() {
    let sim = Sim::new();
    let clock = sim.clock();
    let ran = check("curio_case_52", sim, async {
        let body = async {
            clock.advance(tenths(2));
            Err(Fault::Value)
        };
        timeout_after(tenths(1), body).await
    });
    assert_eq!(word(&ran.output), "ValueError");
    assert_eq!(ran.count("late"), 0);
}

/// The body turns the timeout into its own error, which `ignore_after` passes on.
#[test]
fn curio_case_53() {
    let ran = check("curio_case_53", Sim::new(), async {
        let body = async { op(9).await.map_err(|_| Fault::Value) };
        ignore_after(tenths(1), body).await.map(|_| ())
    });
    assert_eq!(word(&ran.output), "ValueError");
    assert_eq!(ran.took, tenths(1));
    assert_eq!(ran.count("late"), 0);
}

/// A child's timeout is its output, and not its joiner's interrupt: no block of the parent takes
/// it as its own timeout.
#[test]
fn curio_case_54() {
    let ran = check("curio_case_54", Sim::new(), async {
        let mut child = spawn("child", timeout_after(tenths(1), op(9))).await;
        let block = async { child.join().await?.map(Some).map_err(Error::from) };
        timeout_after(tenths(50), ignore_after(tenths(40), block)).await
    });
    let why = ran.output.as_ref().unwrap_err();
    let why = why.interrupt().unwrap();
    assert_eq!((short_kind(why.kind()), why.deadline()), ("TT", Some(Time::ZERO + tenths(1))));
    assert_eq!((ran.count("panic"), ran.count("warn")), (0, 0));
}

/// The parent's join times out. The child continues and can be joined later.
#[test]
fn curio_case_55() {
    let sim = Sim::new();
    let heard = Heard::by(&sim);
    let ran = check("curio_case_55", sim, async {
        let mut child = spawn("child", op(5)).await;
        let first = timeout_after(tenths(1), child.join()).await;
        heard.word("join", short_kind(first.unwrap_err().interrupt().unwrap().kind()));
        heard.outcome("again", &child.join().await.unwrap());
    });
    assert_eq!(heard.notes.text(), "join:TT@10 again:ok@50");
    assert_eq!(ran.count("late"), 0);
}

/// Exactly equal points in time: the outermost wins.
#[test]
fn curio_case_56() {
    let case = Case::of("curio_case_56", |c| c.at(4, c.at(4, c.op(20))));
    case.gave("L2:TCE L1:TT", "TT", 40, 0);
}
