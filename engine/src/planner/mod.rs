//! From a bound query to a [`Plan`]: filters pushed down, columns pruned, join keys and build sides chosen, top-N fused.
//!
//! A plan is read-only and shared; what a run needs of its own is the executor's.
