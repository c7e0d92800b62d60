//! tower's layers. Those that need neither a timer nor a task of tokio work.

use std::cell::Cell;
use std::rc::Rc;
use std::time::Duration;

use ::tower::buffer::Buffer;
use ::tower::load_shed::error::Overloaded;
use ::tower::{BoxError, ServiceBuilder, ServiceExt, service_fn};
use net::interop::ThreadBound;
use traps::{join, join3, sleep, spawn};

use super::run;
use super::tokio::panic_of;

async fn double_slowly(n: u32) -> Result<u32, BoxError> {
    sleep(Duration::from_millis(20)).await?;
    Ok(2 * n)
}

#[test]
fn a_limit_of_tower_holds_calls_back_and_its_maps_change_them() {
    let under_way = Rc::new(Cell::new((0, 0)));
    let counts = under_way.clone();
    let results = run(async move {
        let service = service_fn(move |n| {
            let counts = counts.clone();
            async move {
                let (now, most) = counts.get();
                counts.set((now + 1, most.max(now + 1)));
                let doubled = double_slowly(n).await;
                counts.update(|(now, most)| (now - 1, most));
                doubled
            }
        });
        let service = ServiceBuilder::new()
            .map_request(|text: &str| text.len() as u32)
            .map_response(|n: u32| n + 1)
            .concurrency_limit(2)
            .service(service);
        let call = |text| service.clone().oneshot(text);
        join3(call("a"), call("bb"), call("ccc")).await
    });
    let results = (results.0.unwrap(), results.1.unwrap(), results.2.unwrap());
    assert_eq!((results, under_way.get()), ((3, 5, 7), (0, 2)));
}

#[test]
fn tower_sheds_the_load_above_a_limit() {
    let (first, second) = run(async {
        let service = ServiceBuilder::new()
            .load_shed()
            .concurrency_limit(1)
            .service(service_fn(double_slowly));
        join(service.clone().oneshot(1), service.oneshot(2)).await
    });
    assert_eq!(first.unwrap(), 2);
    assert!(second.unwrap_err().is::<Overloaded>());
}

#[test]
fn a_buffer_of_tower_works_if_its_worker_is_a_task() {
    let (first, second) = run(async {
        // The buffer demands futures that are `Send`.
        let service = service_fn(|n| ThreadBound::new(Box::pin(double_slowly(n))));
        let (buffer, worker) = Buffer::pair(service, 8);
        let mut worker = spawn("worker", worker).await;
        let results = join(buffer.clone().oneshot(1), buffer.oneshot(2)).await;
        worker.join().await.unwrap();
        results
    });
    assert_eq!((first.unwrap(), second.unwrap()), (2, 4));
}

#[test]
fn layers_that_need_tokios_timer_or_its_tasks_panic() {
    let limited = ServiceBuilder::new()
        .timeout(Duration::from_secs(1))
        .service(service_fn(double_slowly))
        .oneshot(1);
    assert_eq!(panic_of(limited), super::tokio::NO_REACTOR);
    let rated = async {
        let service = service_fn(double_slowly);
        let limit = ServiceBuilder::new().rate_limit(1, Duration::from_secs(1));
        limit.service(service).oneshot(1).await
    };
    assert_eq!(panic_of(rated), super::tokio::NO_REACTOR);
    let buffered = async {
        let service = service_fn(|n| ThreadBound::new(Box::pin(double_slowly(n))));
        Buffer::new(service, 8).oneshot(1).await
    };
    assert_eq!(panic_of(buffered), super::tokio::NO_REACTOR);
}
