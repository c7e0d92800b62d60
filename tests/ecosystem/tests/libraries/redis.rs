//! redis-rs, against the example `redis`.

#[allow(dead_code, unreachable_pub, reason = "what the tests call is a part")]
#[path = "../../../../examples/servers/redis.rs"]
mod server;

use std::cell::RefCell;
use std::rc::Rc;
use std::time::Duration;

use ::redis::aio::MultiplexedConnection;
use ::redis::{AsyncCommands, AsyncConnectionConfig, RedisConnectionInfo, RedisResult, cmd};
use net::TcpStream;
use net::interop::{Compat, ThreadBound};
use traps::{join, spawn};

use super::{loopback, run};

/// A client over a connection. redis-rs measures its own timeout by tokio's clock, so it has none
/// here: put a `timeout_after` around a command instead.
async fn connect(stream: TcpStream) -> RedisResult<MultiplexedConnection> {
    let stream = ThreadBound::new(Compat::new(stream));
    let config = AsyncConnectionConfig::new().set_response_timeout(None);
    let info = RedisConnectionInfo::default();
    let (client, driver) = MultiplexedConnection::new_with_config(&info, stream, config).await?;
    spawn("redis", driver).detached().await;
    Ok(client)
}

#[test]
fn commands_of_redis_rs_share_a_connection() {
    let (count, value) = run(async {
        let (client, accepted) = loopback().await;
        let data = Rc::new(RefCell::new(server::Data::new(|| traps::Time::ZERO)));
        let spans = [Duration::from_secs(60); 2];
        let serve = async move { server::client(accepted, 1, &data, spans).await };
        let mut serving = spawn("server", serve).await;
        let client = connect(client).await.unwrap();
        let (mut one, mut two) = (client.clone(), client);
        let count = async {
            let mut count = 0;
            for _ in 0..3 {
                count = cmd("INCR").arg("count").query_async(&mut one).await?;
            }
            RedisResult::<i64>::Ok(count)
        };
        let value = async {
            let () = two.set("tea", "green").await?;
            two.get("tea").await
        };
        let ended: (RedisResult<i64>, RedisResult<String>) = join(count, value).await;
        drop((one, two));
        serving.join().await.unwrap().unwrap();
        ended
    });
    assert_eq!((count.unwrap(), &*value.unwrap()), (3, "green"));
}
