# Two stages: build with the pinned toolchain, run on a small Debian with nothing but the binary.
FROM rust:1.95-slim-bookworm AS build
RUN apt-get update && apt-get install -y --no-install-recommends gcc libc6-dev make && rm -rf /var/lib/apt/lists/*
WORKDIR /src
COPY . .
RUN cargo build --release --locked -p freshet --bin freshet --target-dir /build && strip /build/release/freshet

FROM debian:bookworm-slim
RUN apt-get update && apt-get install -y --no-install-recommends ca-certificates && rm -rf /var/lib/apt/lists/*
RUN useradd --system --uid 990 --no-create-home --shell /usr/sbin/nologin freshet
COPY --from=build /build/release/freshet /usr/local/bin/freshet
COPY config/freshet.toml /etc/freshet/freshet.toml
# In a container clients come from outside it; the admin address stays inside, where the health check asks it. A file that is mounted in
# place of this one says so itself; FRESHET_* variables and flags go before either.
RUN sed -i 's/^addresses = .*/addresses = ["0.0.0.0:5433"]/' /etc/freshet/freshet.toml
# TLS: mount certificate and key, readable for the user 990, and set FRESHET_LISTEN_TLS_CERTIFICATE, FRESHET_LISTEN_TLS_KEY.
ENV FRESHET_CONFIG=/etc/freshet/freshet.toml
# By its number: Kubernetes cannot tell of a name that it is not root's.
USER 990
EXPOSE 5433
HEALTHCHECK --interval=5s --timeout=5s --start-period=10s --retries=3 CMD ["freshet", "health"]
STOPSIGNAL SIGTERM
ENTRYPOINT ["freshet"]
CMD ["serve"]
