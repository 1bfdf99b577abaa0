//! Sales of shops: groups that are brought up to date, and a side of a join that grows.
//!
//! What one sale gains another one of its shop loses in the same statement, so that no shop's sums ever change; or a new shop makes its
//! first sale, so that no sale is ever without its shop.

use crate::client::{Client, Read, Trouble};
use crate::random::Random;
use crate::world::{Kind, World};
use crate::writers::{Work, write_on};

/// Of shops that are there from the beginning. So many that grouping them takes long enough to be worth keeping the groups, and not so
/// long that the catalog is another every time.
const SALES: i64 = if cfg!(debug_assertions) { 50_000 } else { 250_000 };
const SHOPS: i64 = 100;

pub(crate) const SUMS: &str =
    "SELECT shop, count(*), sum(amount), sum(amount + shop) FROM sales WHERE shop < 100 GROUP BY shop ORDER BY shop";
pub(crate) const SOLD: &str = "SELECT count(*), count(o.id) FROM sales s LEFT JOIN shops o ON o.id = s.shop";

pub(crate) fn schema() -> String {
    format!(
        "CREATE TABLE shops (id int PRIMARY KEY, name text);
         CREATE TABLE sales (id int PRIMARY KEY, shop int NOT NULL, amount int NOT NULL);
         INSERT INTO shops SELECT n, 'shop ' || n FROM generate_series(0, {SHOPS} - 1) n;
         INSERT INTO sales SELECT n, n % {SHOPS}, n % 7 FROM generate_series(0, {SALES} - 1) n;
         CREATE SEQUENCE shop START {SHOPS}; CREATE SEQUENCE sale START {SALES};"
    )
}

/// Trades until the end.
pub(crate) fn trade(world: &World, is_through: bool) {
    write_on(world, is_through, &Work { worker: 400, counts_as: "sales", pause_ms: 100, write: sell });
}

fn sell(client: &mut Client, random: &mut Random) -> Result<(), Trouble> {
    if random.one_in(4) {
        return client
            .run(
                "WITH made AS (INSERT INTO shops SELECT nextval('shop'), 'new' RETURNING id)
                 INSERT INTO sales SELECT nextval('sale'), id, 1 FROM made",
            )
            .map(|_| ());
    }
    let gains = random.below(SALES as u64) as i64;
    // In the order of their keys, so that two such do not deadlock.
    let loses = (gains + SHOPS) % SALES;
    let update = format!(
        "WITH pair AS (SELECT id FROM sales WHERE id IN ({gains}, {loses}) ORDER BY id FOR UPDATE)
         UPDATE sales s SET amount = amount + CASE WHEN s.id = {gains} THEN 1 ELSE -1 END FROM pair p WHERE s.id = p.id"
    );
    client.run(&update).map(|_| ())
}

/// What [`SUMS`] always gives.
fn sums() -> Vec<Vec<i64>> {
    let of_shop = |shop: i64| {
        let amounts: Vec<i64> = (shop..SALES).step_by(SHOPS as usize).map(|n| n % 7).collect();
        let (count, sum) = (amounts.len() as i64, amounts.iter().sum::<i64>());
        vec![shop, count, sum, sum + shop * count]
    };
    (0..SHOPS).map(of_shop).collect()
}

pub(crate) fn check_sums(world: &World, read: &Read) {
    if read.numbers() != Some(sums()) {
        world.violated(Kind::Wrong, format!("sums of shops: {:?} ({:?})", read.numbers(), read.route));
    }
}

pub(crate) fn check_sold(world: &World, read: &Read) {
    let is_right = read.numbers().is_some_and(|rows| matches!(&rows[..], [row] if row.len() == 2 && row[0] == row[1]));
    if !is_right {
        world.violated(Kind::Wrong, format!("sales without a shop: {:?} ({:?})", read.numbers(), read.route));
    }
}
