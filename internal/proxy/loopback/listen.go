package loopback

import (
	"context"
	"math/rand/v2"
	"net"
	"strconv"
)

// The ports from which Listen chooses. They lie below those that systems give to outgoing connections (RFC 6335
// section 8.1.2; Linux begins at 32768).
const (
	firstPort = 10_000
	ports     = 10_000
	tries     = 100
)

// Listen listens on 127.0.0.1 at a free port that no outgoing connection will take: once closed, it can be listened
// on again later.
func Listen(ctx context.Context) (net.Listener, error) {
	var config net.ListenConfig
	for range tries {
		port := firstPort + rand.IntN(ports) //nolint:gosec // nothing depends on nobody guessing it
		listener, err := config.Listen(ctx, "tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(port)))
		if err == nil {
			return listener, nil
		}
	}
	return config.Listen(ctx, "tcp", "127.0.0.1:0")
}
