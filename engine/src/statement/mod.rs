//! Filled in by a later commit of this milestone.
