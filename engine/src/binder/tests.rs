//! Against PostgreSQL's own description of about 200 statements.
