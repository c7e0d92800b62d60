//! A future below many `await`s, like a trap in real code.

macro_rules! levels {
    ($($level:ident over $below:ident)*) => {
        $(async fn $level<L: AsyncFn()>(leaf: &L) { $below(leaf).await; })*
    };
}

async fn at_1<L: AsyncFn()>(leaf: &L) {
    leaf().await;
}

levels! {
    at_2 over at_1  at_3 over at_2  at_4 over at_3  at_5 over at_4  at_6 over at_5
    at_7 over at_6  at_8 over at_7  at_9 over at_8  at_10 over at_9
}

/// The numbers of awaits above a leaf.
pub const DEPTHS: [u64; 4] = [1, 2, 5, 10];

/// Runs `leaf` this often, each time below `depth` awaits, one of [`DEPTHS`].
pub async fn run<L: AsyncFn()>(leaf: L, depth: u64, count: u64) {
    match depth {
        1 => at_1_often(&leaf, count).await,
        2 => at_2_often(&leaf, count).await,
        5 => at_5_often(&leaf, count).await,
        10 => at_10_often(&leaf, count).await,
        other => panic!("no depth {other}"),
    }
}

macro_rules! often {
    ($($often:ident $level:ident)*) => {
        $(async fn $often<L: AsyncFn()>(leaf: &L, count: u64) {
            for _ in 0..count {
                $level(leaf).await;
            }
        })*
    };
}

often! { at_1_often at_1  at_2_often at_2  at_5_often at_5  at_10_often at_10 }
