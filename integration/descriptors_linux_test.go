package integration

import (
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// TestDescriptorsExhausted checks that a gateway that may open no more files accepts no more connections, without
// spinning; those that are open are served, and once there are files again, so are the others (Z-O05).
func TestDescriptorsExhausted(t *testing.T) {
	t.Parallel()
	r := startRunning(t, settings{})
	r.call()
	pid, host := r.command.Process.Pid, strings.TrimPrefix(r.url, "http://")
	var before unix.Rlimit
	few := &unix.Rlimit{Cur: uint64(r.descriptors()) + 20, Max: unix.RLIM_INFINITY}
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, nil, &before); err != nil {
		t.Fatal(err)
	}
	few.Max = before.Max
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, few, nil); err != nil {
		t.Fatal(err)
	}
	var idle []net.Conn
	defer func() {
		for _, connection := range idle {
			_ = connection.Close()
		}
	}()
	for range 100 {
		connection, err := net.Dial("tcp", host) // the system accepts it
		if err != nil {
			t.Fatal(err)
		}
		idle = append(idle, connection)
	}
	r.eventually("there are no descriptors left", func() bool { return r.descriptors() >= int(few.Cur) })

	used, begun := processorTime(t, pid), time.Now()
	<-time.After(2 * time.Second) // in which nothing is to be done
	used = processorTime(t, pid) - used
	if share := used.Seconds() / time.Since(begun).Seconds(); share > 0.5 {
		t.Errorf("%.0f %% of a processor for connections that nobody can take", 100*share)
	}
	r.deliver("meanwhile")

	for _, connection := range idle[:90] {
		_ = connection.Close()
	}
	r.eventually("new connections are served", func() bool {
		client := &http.Client{Timeout: callTimeout, Transport: &http.Transport{DisableKeepAlives: true}}
		response, err := client.Get(r.url + "/healthz")
		if err != nil {
			return false
		}
		return response.Body.Close() == nil && response.StatusCode == http.StatusOK
	})
	if err := unix.Prlimit(pid, unix.RLIMIT_NOFILE, &before, nil); err != nil {
		t.Fatal(err)
	}
	r.call()
}

// processorTime returns the processor time that a process has used until now.
func processorTime(t *testing.T, pid int) time.Duration {
	t.Helper()
	text, err := os.ReadFile("/proc/" + strconv.Itoa(pid) + "/stat")
	if err != nil {
		t.Fatal(err)
	}
	// The second field is a name in brackets; user and system time are the 14th and 15th, in hundredths of a second.
	fields := strings.Fields(string(text[strings.LastIndexByte(string(text), ')')+1:]))
	ticks := 0
	for _, field := range fields[11:13] {
		n, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		ticks += n
	}
	return time.Duration(ticks) * 10 * time.Millisecond
}
