//! Harness: throwaway PostgreSQL clusters, freshet processes, clients.
