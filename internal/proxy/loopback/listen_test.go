package loopback

import (
	"net"
	"testing"
)

func TestListen(t *testing.T) {
	seen := make(map[int]bool)
	for range 20 {
		listener, err := Listen(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer listener.Close()
		address := listener.Addr().(*net.TCPAddr)
		if !address.IP.IsLoopback() || address.Port < firstPort || address.Port >= firstPort+ports || seen[address.Port] {
			t.Errorf("listens on %v", address)
		}
		seen[address.Port] = true
	}
}
