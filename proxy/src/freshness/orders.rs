//! Asks upstream how texts are ordered under a collation that is not bytewise, and what letters become in lower and upper
//! case, and keeps what it says for the engine.
//!
//! Upstream sorts, not a library of ours: the answer is right whatever C library, ICU or version it has. What is asked for
//! are values of mirrored tables and of statements, sent as one array; new ones are merged into what is known, by buckets
//! where that is much. One question at a time.

use std::sync::Arc;

use freshet_engine::catalog::order::{Letters, Missing, Orders};
use freshet_engine::types::Oid;
use tokio::sync::Mutex;
use tokio_postgres::{Client, Row};

use crate::upstream::UpstreamError;
use crate::upstream::service::ServicePool;

/// Up to so many known texts are simply sorted again with the new ones.
const SORTED_AGAIN_MAX: usize = 4_096;
/// Beyond, every so manieth known text tells between which of them a new one belongs.
const BUCKET: usize = 256;

pub struct TextOrders {
    pool: ServicePool,
    asking: Mutex<()>,
}

type Texts = Vec<Arc<str>>;

impl TextOrders {
    pub(super) fn new(pool: ServicePool) -> Self {
        Self { pool, asking: Mutex::default() }
    }

    /// Makes the places of the missing texts and the case of the missing letters known.
    pub async fn learn(&self, orders: &Orders, missing: &Missing) -> Result<(), UpstreamError> {
        let _one = self.asking.lock().await;
        let client = self.pool.connection().await?;
        for (collation, letters) in &missing.letters {
            let question = Question::new(&client, *collation, orders.upstream_started_at()).await?;
            orders.insert_letters(*collation, question.letters(letters).await?);
        }
        for (collation, texts) in &missing.texts {
            let known = orders.known(*collation);
            let new: Texts = texts.iter().filter(|text| !known.has(text)).cloned().collect();
            if new.is_empty() {
                continue;
            }
            let question = Question::new(&client, *collation, orders.upstream_started_at()).await?;
            let whole = question.merge(known.texts(), new).await?;
            let asked: std::collections::HashSet<&str> = texts.iter().map(|text| &**text).collect();
            orders.insert(*collation, whole, &|text| asked.contains(text));
        }
        Ok(())
    }
}

struct Question<'c> {
    client: &'c Client,
    collation: Oid,
    upstream_started_at: i64,
    /// As written in SQL.
    name: String,
}

impl<'c> Question<'c> {
    async fn new(client: &'c Client, collation: Oid, upstream_started_at: i64) -> Result<Self, UpstreamError> {
        let name = "SELECT format('%I.%I', n.nspname, c.collname)
                      FROM pg_collation c JOIN pg_namespace n ON n.oid = c.collnamespace WHERE c.oid = $1";
        let row = client.query_opt(name, &[&collation]).await?;
        let name: String = row.ok_or(UpstreamError::Protocol("a collation is gone"))?.get(0);
        Ok(Self { client, collation, upstream_started_at, name })
    }

    /// One row: what `select` makes of the texts `u.text` with their places, if this still is the collation asked for.
    async fn ask(&self, select: &str, texts: &[&str]) -> Result<Row, UpstreamError> {
        let sql = format!(
            "SELECT to_regcollation($2)::oid, (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8 - 946684800000000,
                    {select} FROM unnest($1::text[]) WITH ORDINALITY u (text, place)"
        );
        let row = self.client.query_one(&sql, &[&texts, &self.name]).await?;
        // The name may have come to mean another collation meanwhile, and the process may be another one.
        let (collation, started_at): (Option<Oid>, i64) = (row.try_get(0)?, row.try_get(1)?);
        if collation != Some(self.collation) || started_at != self.upstream_started_at {
            return Err(UpstreamError::Protocol("a collation is not the same any more"));
        }
        Ok(row)
    }

    async fn letters(&self, letters: &[char]) -> Result<Letters, UpstreamError> {
        let texts: Vec<String> = letters.iter().map(char::to_string).collect();
        let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
        let select = |function: &str| format!("array_agg({function}(u.text COLLATE {}) ORDER BY u.place)", self.name);
        let row = self.ask(&format!("{}, {}", select("lower"), select("upper")), &texts).await?;
        let (lower, upper): (Vec<String>, Vec<String>) = (row.try_get(2)?, row.try_get(3)?);
        let both = lower.into_iter().zip(upper).map(|(lower, upper)| [lower.into(), upper.into()]);
        Ok(letters.iter().copied().zip(both).collect())
    }

    /// All of `known`, which is in order, and `new`, in order.
    async fn merge(&self, known: &[Arc<str>], new: Texts) -> Result<Texts, UpstreamError> {
        if known.len() <= SORTED_AGAIN_MAX {
            return self.sorted(known.iter().cloned().chain(new).collect()).await;
        }
        let pivots: Texts = known.iter().step_by(BUCKET).skip(1).cloned().collect();
        let is_pivot: std::collections::HashSet<&str> = pivots.iter().map(|text| &**text).collect();
        let rough = self.sorted(pivots.iter().cloned().chain(new.iter().cloned()).collect()).await?;
        // Which buckets get something, and how much.
        let mut gains = vec![0; pivots.len() + 1];
        let mut bucket = 0;
        for text in &rough {
            if is_pivot.contains(&**text) {
                bucket += 1;
            } else {
                gains[bucket] += 1;
            }
        }
        let buckets = || known.chunks(BUCKET).zip(&gains);
        let touched = buckets().filter(|(_, gain)| **gain > 0).flat_map(|(bucket, _)| bucket).cloned();
        let mut fine = self.sorted(touched.chain(new).collect()).await?.into_iter();
        let mut whole = Vec::with_capacity(known.len() + fine.len());
        for (bucket, gain) in buckets() {
            match gain {
                0 => whole.extend_from_slice(bucket),
                gain => whole.extend(fine.by_ref().take(bucket.len() + gain)),
            }
        }
        Ok(whole)
    }

    async fn sorted(&self, texts: Texts) -> Result<Texts, UpstreamError> {
        let list: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let select = format!("array_agg(u.place ORDER BY u.text COLLATE {})", self.name);
        let places: Vec<i64> = self.ask(&select, &list).await?.try_get(2)?;
        let text = |place: &i64| usize::try_from(*place - 1).ok().and_then(|place| texts.get(place)).cloned();
        let sorted: Option<Texts> = places.iter().map(text).collect();
        sorted
            .filter(|sorted| sorted.len() == texts.len())
            .ok_or(UpstreamError::Protocol("an order is not that of what was asked"))
    }
}
