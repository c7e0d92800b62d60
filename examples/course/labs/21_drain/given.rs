//! Given: customers who send orders, and a SIGTERM among them.

use std::time::Duration;

use kernel::{Kernel, Options, Sim};
use traps::channel::mpsc::{self, Sender};
use traps::time::Time;
use traps::{Error, Signal, note, sleep, spawn};

use super::lab;

/// The unit of this lab.
pub const SECOND: Duration = Duration::from_secs(1);

/// The process is told to end at this time.
const SIGTERM_AT: Time = Time::from_micros(2_000_000);

/// A shutdown waits so long for what is held.
const DRAIN: Duration = Duration::from_secs(10);

/// What a customer wants.
pub struct Order {
    /// From 1.
    pub number: u32,
    /// How long it takes to serve.
    takes: Duration,
}

impl Order {
    /// Serves it. The customer has got it when this has returned `Ok`.
    pub async fn serve(self) -> Result<(), Error> {
        note(format!("order {} begins", self.number));
        sleep(self.takes).await?;
        note(format!("order {} is done", self.number));
        Ok(())
    }
}

/// An order each second, until one is refused. Who is refused asks another server, at once; who is
/// neither served nor refused waits for ever.
async fn customers(orders: Sender<Order>) -> Result<(), Error> {
    sleep(SECOND / 2).await?;
    for (number, takes) in (1..).zip([6, 3, 2, 2, 2, 2, 2, 2, 2, 2, 2, 2]) {
        let order = Order { number, takes: takes * SECOND };
        match orders.send(order).await.map_err(|rejected| rejected.why) {
            Ok(()) => note(format!("order {number} is sent")),
            Err(Error::Interrupt(interrupt)) => return Err(interrupt.into()),
            Err(_) => {
                note(format!("order {number} is refused"));
                break;
            }
        }
        sleep(SECOND).await?;
    }
    Ok(())
}

pub fn main(_seed: u64) {
    let sim = Sim::new().signal_at(SIGTERM_AT, Signal::Terminate);
    let options = Options::new().shutdown_on(&[Signal::Terminate]).drain(DRAIN);
    let mut kernel = Kernel::with_options(sim, options);
    kernel.trace_to(std::io::stdout());
    let server = async {
        let (sender, orders) = mpsc::named("orders", 20);
        spawn("customer", customers(sender)).detached().await;
        if let Err(error) = lab::serve(orders).await {
            note(format!("the server failed: {error}"));
        }
    };
    kernel.run(server).unwrap_or_else(|error| panic!("{error}"));
    // The server has returned; the shutdown goes on for what is still held.
    kernel.shutdown().unwrap_or_else(|error| panic!("in the shutdown, {error}"));
}
