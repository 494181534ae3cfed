# syntax=docker/dockerfile:1

FROM golang:1.26.8-bookworm AS build
WORKDIR /src
# Apart from the sources, so that a change of those fetches nothing anew.
COPY go.mod go.sum ./
RUN go mod download
COPY . .
RUN make production

FROM alpine:3.22
COPY --from=build /etc/ssl/certs/ca-certificates.crt /etc/ssl/certs/ca-certificates.crt
COPY --from=build /src/bin/production/durward /usr/local/bin/durward
COPY caddyfile/edge.caddyfile /etc/durward/Caddyfile

# Nothing in here runs as root. Both directories are made after USER, so that they
# belong to it: the admin socket lives in the first, the store in the second.
USER 65532:65532
WORKDIR /run/durward
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
    CMD wget -q -T 2 -O /dev/null "$DURWARD_HEALTH_URL" || exit 1

ENTRYPOINT ["/usr/local/bin/durward"]
CMD ["run", "--config", "/etc/durward/Caddyfile"]
