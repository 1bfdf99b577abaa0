//! Asks upstream how texts are ordered under a collation that is not bytewise, and what letters become in lower and upper
//! case, and keeps what it says for the engine.
//!
//! Upstream sorts, not a library of ours: the answer is right whatever C library, ICU or version it has. What is asked for
//! are values of mirrored tables and of statements, sent as one array. Where a few new ones belong is searched for among what is known, in two
//! steps; many are merged into it, by buckets where that is much. One question at a time.

use std::ops::Range;
use std::sync::Arc;

use freshet_engine::catalog::order::{KnownOrder, Letters, Missing, Orders};
use freshet_engine::types::Oid;
use tokio::sync::Mutex;
use tokio_postgres::types::{ToSql, Type};
use tokio_postgres::{Client, Row};

use crate::upstream::UpstreamError;
use crate::upstream::service::ServicePool;

/// Up to so many known texts are simply sorted again with the new ones.
const SORTED_AGAIN_MAX: usize = 4_096;
/// Beyond, every so manieth known text tells between which of them a new one belongs.
const BUCKET: usize = 256;
/// So many new texts, and no more than are known, are searched for one by one.
const FEW: usize = 512;
/// Then upstream is sent about as many known texts in each of the two steps; fewer are not worth counting.
const SEARCHED_MIN: usize = 8;

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
            let asked: std::collections::HashSet<&str> = texts.iter().map(|text| &**text).collect();
            let is_asked = |text: &str| asked.contains(text);
            if new.len() <= FEW.min(known.len()) {
                let placed = question.places(&known, new).await?;
                orders.place(*collation, &known, &placed, &is_asked);
            } else {
                let known: Texts = known.from(0).map(|(_, text)| Arc::clone(text)).collect();
                orders.insert(*collation, question.merge(&known, new).await?, &is_asked);
            }
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
        self.ask_of(select, "unnest($1::text[]) WITH ORDINALITY u (text, place)", &[(&texts, Type::TEXT_ARRAY)]).await
    }

    /// `rows`: of the parameters from $1 on. Behind them is the collation's name.
    async fn ask_of(
        &self,
        select: &str,
        rows: &str,
        parameters: &[(&(dyn ToSql + Sync), Type)],
    ) -> Result<Row, UpstreamError> {
        let name = parameters.len() + 1;
        let sql = format!(
            "SELECT to_regcollation(${name})::oid, (extract(epoch FROM pg_postmaster_start_time()) * 1000000)::int8 - 946684800000000,
                    {select} FROM {rows}"
        );
        let mut parameters = parameters.to_vec();
        parameters.push((&self.name, Type::TEXT));
        // Such a statement is prepared for each question, so that it is one round trip.
        let rows = self.client.query_typed(&sql, &parameters).await?;
        let row = rows.into_iter().next().ok_or(UpstreamError::Protocol("a question about order has no answer"))?;
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

    /// `new` in order, each with the rank of the known text that it is next behind. Upstream searches by halves (width_bucket): first among
    /// some of the known ones, then among those between two of these.
    async fn places(&self, known: &KnownOrder, new: Texts) -> Result<Vec<(Option<i64>, Arc<str>)>, UpstreamError> {
        let step = known.len().div_ceil(new.len()).isqrt().max(SEARCHED_MIN);
        let (sorted, numbers) = self.bucket_numbers(&new, &known.pivots(step)).await?;
        let among = Among::of(known, step, &numbers);
        let counts = self.counts(&sorted, &among).await?;
        if [counts.len(), among.parts.len()] != [sorted.len(); 2] {
            return Err(UpstreamError::Protocol("an order is not that of what was asked"));
        }
        let placed = sorted.into_iter().zip(counts).zip(&among.parts);
        Ok(placed.map(|((text, count), part)| (among.rank_before(part, count), text)).collect())
    }

    /// The texts in order, and how many of the pivots, which are in order, are not behind each.
    async fn bucket_numbers(&self, texts: &[Arc<str>], pivots: &[&str]) -> Result<(Texts, Vec<i32>), UpstreamError> {
        let list: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let text = format!("u.text COLLATE {}", self.name);
        let select =
            format!("array_agg(u.place ORDER BY {text}), array_agg(width_bucket({text}, $2::text[]) ORDER BY {text})");
        let rows = "unnest($1::text[]) WITH ORDINALITY u (text, place)";
        let row = self.ask_of(&select, rows, &[(&list, Type::TEXT_ARRAY), (&pivots, Type::TEXT_ARRAY)]).await?;
        let places: Vec<i64> = row.try_get(2)?;
        Ok((in_places(texts, &places)?, row.try_get(3)?))
    }

    /// How many of its part each text is not before.
    async fn counts(&self, texts: &[Arc<str>], among: &Among<'_>) -> Result<Vec<i32>, UpstreamError> {
        let list: Vec<&str> = texts.iter().map(|text| &**text).collect();
        let select = format!(
            "array_agg(width_bucket(u.text COLLATE {}, ($2::text[])[u.first:u.last]) ORDER BY u.place)",
            self.name
        );
        let rows = "unnest($1::text[], $3::int4[], $4::int4[]) WITH ORDINALITY u (text, first, last, place)";
        // Counted from 1.
        let (first, last): (Vec<i32>, Vec<i32>) =
            among.parts.iter().map(|part| (part.start as i32 + 1, part.end as i32)).unzip();
        let parameters: [(&(dyn ToSql + Sync), Type); 4] = [
            (&list, Type::TEXT_ARRAY),
            (&among.texts, Type::TEXT_ARRAY),
            (&first, Type::INT4_ARRAY),
            (&last, Type::INT4_ARRAY),
        ];
        Ok(self.ask_of(&select, rows, &parameters).await?.try_get(2)?)
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
        in_places(&texts, &places)
    }
}

/// The known texts that some new ones are searched for among: those of the buckets that get one, each bucket once.
struct Among<'k> {
    texts: Vec<&'k str>,
    ranks: Vec<i64>,
    /// Of each new text.
    parts: Vec<Range<usize>>,
}

impl<'k> Among<'k> {
    /// `numbers`: of each new text's bucket, rising.
    fn of(known: &'k KnownOrder, step: usize, numbers: &[i32]) -> Self {
        let (mut texts, mut ranks, mut parts) = (Vec::new(), Vec::new(), Vec::new());
        for of_bucket in numbers.chunk_by(|one, other| one == other) {
            let start = texts.len();
            for (rank, text) in known.bucket(step, usize::try_from(of_bucket[0]).unwrap_or_default()) {
                ranks.push(rank);
                texts.push(&**text);
            }
            parts.extend(std::iter::repeat_n(start..texts.len(), of_bucket.len()));
        }
        Self { texts, ranks, parts }
    }

    /// Of the last of so many first ones of the part.
    fn rank_before(&self, part: &Range<usize>, count: i32) -> Option<i64> {
        let last = usize::try_from(count).ok()?.checked_sub(1)?;
        self.ranks.get(part.start + last).copied()
    }
}

/// `places`: counted from 1.
fn in_places(texts: &[Arc<str>], places: &[i64]) -> Result<Texts, UpstreamError> {
    let text = |place: &i64| usize::try_from(*place - 1).ok().and_then(|place| texts.get(place)).cloned();
    let sorted: Option<Texts> = places.iter().map(text).collect();
    sorted
        .filter(|sorted| sorted.len() == texts.len())
        .ok_or(UpstreamError::Protocol("an order is not that of what was asked"))
}
