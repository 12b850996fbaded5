# The shell in an image of its own: docker build -t grouse . && docker run --rm -v "$PWD:/data" grouse "SELECT count(*) FROM 'orders.parquet'"
# On x86-64 it wants AVX2; `--build-arg RUSTFLAGS='-C target-cpu=x86-64-v2'` builds one for older processors.
FROM rust:1.95-bookworm AS build
ARG RUSTFLAGS
WORKDIR /src
COPY . .
ENV CARGO_TARGET_DIR=/src/target
RUN if [ -z "$RUSTFLAGS" ]; then unset RUSTFLAGS; fi \
    && cargo build --release --locked -p grouse-cli \
    && strip -o /grouse target/release/grouse

FROM debian:bookworm-slim
RUN useradd --create-home grouse
COPY --from=build /grouse /usr/local/bin/grouse
COPY LICENSE /usr/share/doc/grouse/LICENSE
USER grouse
WORKDIR /data
ENTRYPOINT ["grouse"]
