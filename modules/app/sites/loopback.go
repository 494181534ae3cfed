package sites

import (
	"errors"
	"fmt"

	"github.com/caddyserver/caddy/v2"

	"github.com/durward-gateway/durward/internal/proxy/loopback"
)

// RequireLoopback refuses a development identity provider on a site that other machines could reach, or that is not in
// the JSON.
func RequireLoopback(ctx caddy.Context) error {
	sites := ofGateway(ctx)
	if len(sites) == 0 {
		return errors.New("identity dev: the site of the gateway cannot be read from this configuration; put the gateway's handlers into the site itself")
	}
	for _, s := range sites {
		for _, listen := range s.listen {
			if !isLoopbackAddress(listen) {
				return fmt.Errorf("identity dev: the site listens on %q, which others can reach; bind it to 127.0.0.1", listen)
			}
		}
	}
	return nil
}

func isLoopbackAddress(listen string) bool {
	address, err := caddy.ParseNetworkAddress(listen)
	if err != nil {
		return false
	}
	return address.IsUnixNetwork() || loopback.IsHost(address.Host)
}
