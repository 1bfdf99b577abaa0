//! Whether the memory that the settings allow is there: whoever is given less than that is ended by the system under load, and copies
//! everything again.

use std::fs;

use freshet_config::Settings;

/// Where a container's limit stands: cgroup v2, then v1, as seen from inside.
const LIMITS: [&str; 2] = ["/sys/fs/cgroup/memory.max", "/sys/fs/cgroup/memory/memory.limit_in_bytes"];

/// What is wrong, in words; None: it fits, or what there is is not known.
pub fn shortage(settings: &Settings) -> Option<String> {
    let (wanted, there) = (wanted(settings), there()?);
    (wanted > there).then(|| {
        format!(
            "the settings allow {} MiB of memory, of which {} MiB are there: mirror.memory_bytes_max, \
             limits.queries_memory_bytes_max, cache.* and freshness.snapshot_bytes_max together must fit",
            wanted >> 20,
            there >> 20
        )
    })
}

/// The sum of what is bounded, of a transaction that is being received too.
fn wanted(settings: &Settings) -> u64 {
    let (mirror, cache) = (&settings.mirror, settings.cache.within_budget());
    let of_mirror =
        if mirror.memory_bytes_max == 0 { 0 } else { mirror.memory_bytes_max + mirror.transaction_bytes_max() };
    of_mirror
        .saturating_add(cache.result_bytes_max + cache.join_bytes_max + cache.plan_bytes_max + cache.capture_bytes_max)
        .saturating_add(settings.limits.queries_memory_bytes_max)
        .saturating_add(settings.freshness.snapshot_bytes_max)
}

/// What this process may have.
fn there() -> Option<u64> {
    let of_machine = fs::read_to_string("/proc/meminfo").ok().and_then(|text| total(&text))?;
    let limits = LIMITS.iter().filter_map(|path| fs::read_to_string(path).ok()?.trim().parse::<u64>().ok());
    limits.chain([of_machine]).min()
}

/// MemTotal, in bytes.
fn total(meminfo: &str) -> Option<u64> {
    let line = meminfo.lines().find_map(|line| line.strip_prefix("MemTotal:"))?;
    Some(line.trim().strip_suffix("kB")?.trim().parse::<u64>().ok()? << 10)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_does_not_fit_is_told() {
        assert_eq!(total("MemFree: 1 kB\nMemTotal:        2048 kB\n"), Some(2 << 20));
        assert_eq!(total("nothing"), None);
        let mut settings = Settings::default();
        settings.mirror.memory_bytes_max = 1 << 49;
        assert!(shortage(&settings).expect("no machine has it").contains("mirror.memory_bytes_max"));
        settings.mirror.memory_bytes_max = 0;
        settings.limits.queries_memory_bytes_max = 1 << 20;
        settings.freshness.snapshot_bytes_max = 0;
        settings.cache.bytes_max = 1 << 20;
        settings.cache.capture_bytes_max = 0;
        assert_eq!(shortage(&settings), None);
    }
}
