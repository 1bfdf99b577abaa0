//! What an operator can set: `freshet.toml`, then `FRESHET_*` variables, then flags, checked into `Settings`.
