package integration

import (
	"bufio"
	"fmt"
	"net"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"golang.org/x/sys/unix"

	"github.com/durward-gateway/durward/integration/rig"
)

// TestAttackVanishedClients checks that a client whose machine is gone acknowledges nothing (W02). It is let go within
// write_idle, and the upstream with it, from a stream that has signs of life to send and from one that is silent.
func TestAttackVanishedClients(t *testing.T) {
	t.Parallel()
	g := startGateway(t, settings{
		// So many probes of the system's own would take a quarter of an hour.
		global: "servers {\n timeouts {\n write_idle 1s\n }\n keepalive_idle 1s\n keepalive_interval 1s\n keepalive_count 1000\n }",
		option: "streams {\n heartbeat 1s\n }",
	})
	var open atomic.Int64
	upstream := newUpstream(t, func(w http.ResponseWriter, r *http.Request, _ []byte) {
		open.Add(1)
		defer open.Add(-1)
		beginEvents(w)
		<-r.Context().Done()
	})
	s := g.createServer(upstream.url, upstream.eventsEntry())
	host, token := strings.TrimPrefix(g.url, "http://"), g.token(alice)
	for name, path := range map[string]string{"signs of life": "/sse/" + s.Slug, "silence": s.path} {
		t.Run("W02 "+name, func(t *testing.T) {
			connection, err := net.Dial("tcp", host)
			if err != nil {
				t.Fatal(err)
			}
			defer connection.Close()
			if _, err := fmt.Fprintf(connection, "GET %s HTTP/1.1\r\nHost: %s\r\nAuthorization: Bearer %s\r\nAccept: text/event-stream\r\n\r\n", path, host, token); err != nil {
				t.Fatal(err)
			}
			response, err := http.ReadResponse(bufio.NewReader(connection), nil)
			if err != nil || response.StatusCode != http.StatusOK || open.Load() != 1 {
				t.Fatalf("%+v, %v, %d streams at the upstream", response, err, open.Load())
			}
			deafen(t, connection)
			rig.Eventually(t, "the upstream to be let go", func() bool { return open.Load() == 0 })
		})
	}
}

// deafen makes the system drop whatever comes for a connection.
func deafen(t *testing.T, connection net.Conn) {
	t.Helper()
	raw, err := connection.(*net.TCPConn).SyscallConn()
	if err != nil {
		t.Fatal(err)
	}
	nothing := &unix.SockFprog{Len: 1, Filter: &unix.SockFilter{Code: unix.BPF_RET | unix.BPF_K}}
	if e := raw.Control(func(fd uintptr) {
		err = unix.SetsockoptSockFprog(int(fd), unix.SOL_SOCKET, unix.SO_ATTACH_FILTER, nothing)
	}); e != nil || err != nil {
		t.Fatal(e, err)
	}
}
