package faults

import (
	"bufio"
	"os"
	"strings"
	"testing"
)

// TestBlockedLog checks the case that nobody reads the gateway's log: the pipe is full (Z-X03). Calls go on, and what
// waits is there for who reads on.
func TestBlockedLog(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	s := startSite(t, plan{nodes: 1, site: "log {\n\t\toutput durward file /dev/fd/3\n\t}", files: []*os.File{write}})
	n, client := s.nodes[0], newClient(t)
	tool, token := n.newServer("Tool", nil, everything), s.token(admin)
	const calls = 500 // a pipe holds 64 KiB
	for i := range calls {
		if a := n.call(client, token, tool, "echo"); !a.passed() {
			t.Fatalf("call %d: %v", i, a)
		}
	}
	log := bufio.NewScanner(read)
	for found := 0; found < calls && log.Scan(); {
		line := log.Text()
		if !strings.HasPrefix(line, "{") || !strings.HasSuffix(line, "}") {
			t.Fatalf("half a line: %q", line)
		}
		if strings.Contains(line, `"uri":"/mcp/`) {
			found++
		}
	}
	if log.Err() != nil {
		t.Error(log.Err())
	}
}

// TestStopsWithBlockedLog checks the case that the log is full when the gateway is asked to end.
func TestStopsWithBlockedLog(t *testing.T) {
	t.Parallel()
	read, write, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	defer read.Close()
	defer write.Close()
	s := startSite(t, plan{nodes: 1, global: "log {\n\t\toutput durward file /dev/fd/3\n\t\tlevel DEBUG\n\t}", site: "log", files: []*os.File{write}})
	n, client := s.nodes[0], newClient(t)
	tool, token := n.newServer("Tool", nil, everything), s.token(admin)
	for i := range 200 {
		if a := n.call(client, token, tool, "echo"); !a.passed() {
			t.Fatalf("call %d: %v", i, a)
		}
	}
	n.Stop(t) // says so when it takes too long
}
