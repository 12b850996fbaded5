# The shell in an image of its own: docker build -t grouse . && docker run --rm -v "$PWD:/data" grouse "SELECT count(*) FROM 'orders.parquet'"
# On x86-64 it wants AVX2; `--build-arg RUSTFLAGS='-C target-cpu=x86-64-v2'` builds one for older processors.
FROM rust:1.95-bookworm AS build
ARG RUSTFLAGS
WORKDIR /src
COPY . .
ENV CARGO_TARGET_DIR=/src/target
RUN if [ -z "$RUSTFLAGS" ]; then unset RUSTFLAGS; fi \
    && cargo build --release --locked -p grouse-cli -p grouse-node \
    && strip -o /grouse target/release/grouse \
    && strip -o /grouse-cluster target/release/grouse-cluster

# Scheduler and executors: docker build --target cluster -t grouse-cluster .
FROM debian:bookworm-slim AS cluster
RUN useradd --create-home grouse && mkdir /work && chown grouse /work
COPY --from=build /grouse-cluster /usr/local/bin/grouse-cluster
COPY LICENSE /usr/share/doc/grouse-cluster/LICENSE
USER grouse
ENTRYPOINT ["grouse-cluster"]

FROM debian:bookworm-slim
RUN useradd --create-home grouse
COPY --from=build /grouse /usr/local/bin/grouse
COPY LICENSE /usr/share/doc/grouse/LICENSE
USER grouse
WORKDIR /data
ENTRYPOINT ["grouse"]
