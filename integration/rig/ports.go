package rig

import (
	"math/rand/v2"
	"net"
	"os"
	"strconv"
	"sync"
	"testing"
)

// Ports of tests are below those that the system gives to outgoing connections, so that none of them takes a port before
// its process does. They are in ranges, one for each process that runs tests.
const (
	firstPort  = 10_000
	portRanges = 8
	rangeSize  = 2_500
)

// portClaim is a range that a process has taken.
type portClaim struct {
	first int
	// lock is the file whose lock shows that the range is taken. It stays open, and the system releases it with the process.
	lock *os.File
}

// portRange returns this process's range.
var portRange = sync.OnceValues(claimPortRange)

// portsGiven holds the ports that FreePort has given out. None is given twice: Caddy shares a port with any process
// that has it (SO_REUSEPORT), so that two gateways that start at once on one port would answer each other's requests.
// For the same reason no two processes that run tests have one range.
var portsGiven sync.Map

// FreePort finds a port to listen on.
func FreePort(t testing.TB) string {
	t.Helper()
	claim, err := portRange()
	if err != nil {
		t.Fatal(err)
	}
	for range 10 * rangeSize {
		port := strconv.Itoa(claim.first + rand.IntN(rangeSize)) //nolint:gosec // any port is as good as another
		if _, given := portsGiven.LoadOrStore(port, true); given {
			continue
		}
		listener, err := net.Listen("tcp", "127.0.0.1:"+port)
		if err != nil {
			continue
		}
		if err := listener.Close(); err != nil {
			t.Fatal(err)
		}
		return port
	}
	t.Fatal("no port is free")
	return ""
}
