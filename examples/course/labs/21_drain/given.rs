//! Given: customers who send orders, and a SIGTERM among them.

use std::time::Duration;

use kernel::{Kernel, Options, Sim};
use traps::channel::mpsc::{self, Sender};
use traps::time::Time;
use traps::{Error, Signal, note, sleep, spawn};

use super::lab;
use super::scenario::{self, Scenario};

/// The order of a customer.
pub struct Order {
    /// The number, from 1.
    pub number: u32,
    /// The time that it takes to serve the order.
    takes: Duration,
}

impl Order {
    /// Serves the order. The customer has it once this has returned `Ok`.
    pub async fn serve(self) -> Result<(), Error> {
        note(format!("order {} begins", self.number));
        sleep(self.takes).await?;
        note(format!("order {} is done", self.number));
        Ok(())
    }
}

/// Sends orders from time to time, until one is refused. A customer whose order is refused asks
/// another server. A customer whose order is neither served nor refused waits forever.
async fn customers(orders: Sender<Order>, scenario: Scenario) -> Result<(), Error> {
    sleep(scenario.first).await?;
    let later = [Duration::from_secs(2); 8];
    let takes = scenario.takes.into_iter().map(Duration::from_secs).chain(later);
    for (number, takes) in (1..).zip(takes) {
        let order = Order { number, takes };
        match orders.send(order).await.map_err(|rejected| rejected.why) {
            Ok(()) => note(format!("order {number} is sent")),
            Err(Error::Interrupt(interrupt)) => return Err(interrupt.into()),
            Err(_) => {
                note(format!("order {number} is refused"));
                break;
            }
        }
        sleep(scenario.every).await?;
    }
    Ok(())
}

pub fn main(seed: u64) {
    let scenario = scenario::of(seed);
    let sim = Sim::new().signal_at(Time::ZERO + scenario.sigterm, Signal::Terminate);
    let options = Options::new().shutdown_on(&[Signal::Terminate]).drain(scenario.drain);
    let mut kernel = Kernel::with_options(sim, options);
    kernel.trace_to(std::io::stdout());
    let server = async {
        let (sender, orders) = mpsc::named("orders", 20);
        spawn("customer", customers(sender, scenario)).detached().await;
        if let Err(error) = lab::serve(orders).await {
            note(format!("the server failed: {error}"));
        }
    };
    kernel.run(server).unwrap_or_else(|error| panic!("{error}"));
    // The server has returned. The shutdown waits for the remaining holds.
    kernel.shutdown().unwrap_or_else(|error| panic!("in the shutdown, {error}"));
}
