# syntax=docker/dockerfile:1

FROM golang:1.26.8-bookworm AS build
WORKDIR /src
# Apart from the sources, so that a change of those fetches nothing anew.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make image-root

# The gateway, certificates and a Caddyfile, and no other program. Names of time zones are in the gateway.
FROM scratch
COPY --from=build /src/bin/image/root/ /
# Nothing in here runs as root. The admin socket lives in the first, the store in the second.
COPY --from=build --chown=65532:65532 /src/bin/image/empty/ /run/durward/
COPY --from=build --chown=65532:65532 /src/bin/image/empty/ /var/lib/durward/
USER 65532:65532
WORKDIR /var/lib/durward
ENV XDG_CONFIG_HOME=/var/lib/durward/config \
    XDG_DATA_HOME=/var/lib/durward/data \
    DURWARD_HEALTH_URL=http://127.0.0.1:8081/healthz
VOLUME /var/lib/durward
EXPOSE 80 443 443/udp

# The Caddyfile above answers at this address with a site for this machine only. One
# of your own needs it too, or another DURWARD_HEALTH_URL:
#   http://127.0.0.1:8081 {
#     bind 127.0.0.1
#     durward_auth
#     durward_platform health_only
#   }
HEALTHCHECK --interval=10s --timeout=3s --start-period=10s --retries=3 \
    CMD ["/usr/local/bin/durward", "health"]

ENTRYPOINT ["/usr/local/bin/durward"]
CMD ["run", "--config", "/etc/durward/Caddyfile"]
