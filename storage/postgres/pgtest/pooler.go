package pgtest

import (
	"bytes"
	"context"
	"fmt"
	"net/url"
	"os"
	osexec "os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"testing"

	"github.com/jackc/pgx/v5"
)

// pooled holds the settings of a pgbouncer in front of one server. It asks for no password, and accepts only its
// default startup parameters.
const pooled = `[databases]
* = host=127.0.0.1 port=<server>
[pgbouncer]
listen_addr = 127.0.0.1
listen_port = <port>
unix_socket_dir =
auth_type = trust
auth_file = <folder>/users
pool_mode = <mode>
default_pool_size = 40
max_client_conn = 200
`

// Pooler starts pgbouncer in front of the server, in one of pgbouncer's own modes ("session", "transaction"), and
// returns the address of the server's database through it. It ends with the test.
func (s *Server) Pooler(tb testing.TB, mode string) string {
	tb.Helper()
	program, err := osexec.LookPath("pgbouncer")
	if err != nil {
		if program = "/usr/sbin/pgbouncer"; !isThere(program) {
			tb.Fatal("pgbouncer is not installed: run `make setup`")
		}
	}
	port, err := freePort()
	if err != nil {
		tb.Fatal(err)
	}
	folder := filepath.Join(s.folder, "pooler-"+mode)
	settings := strings.NewReplacer("<server>", fmt.Sprint(s.port), "<port>", fmt.Sprint(port), "<folder>", folder, "<mode>", mode).Replace(pooled)
	users := fmt.Sprintf("%q %q\n%q %q\n", role, password, "postgres", "")
	if err := os.Mkdir(folder, 0o755); err != nil { //nolint:gosec // another user reads it, and no other can get here
		tb.Fatal(err)
	}
	for name, content := range map[string]string{"pgbouncer.ini": settings, "users": users} {
		if err := os.WriteFile(filepath.Join(folder, name), []byte(content), 0o644); err != nil { //nolint:gosec // as above
			tb.Fatal(err)
		}
	}
	output, ended := new(bytes.Buffer), make(chan struct{})
	started := make(chan *os.Process)
	go func() {
		runtime.LockOSThread() // as in run
		defer runtime.UnlockOSThread()
		defer close(ended)
		cmd := osexec.Command(program, filepath.Join(folder, "pgbouncer.ini"))
		cmd.SysProcAttr, cmd.Dir = &syscall.SysProcAttr{Credential: s.credential}, s.folder
		dieWithParent(cmd.SysProcAttr)
		cmd.Stdout, cmd.Stderr = output, output
		if err := cmd.Start(); err != nil {
			fmt.Fprint(output, err)
			close(started)
			return
		}
		started <- cmd.Process
		_ = cmd.Wait() // its output says why
	}()
	process, ok := <-started
	if !ok {
		<-ended
		tb.Fatalf("starting pgbouncer: %s", output)
	}
	tb.Cleanup(func() {
		_ = process.Kill() // it may have ended
		<-ended
	})
	address, err := url.Parse(s.URL())
	if err != nil {
		tb.Fatal(err)
	}
	address.Host = fmt.Sprint("127.0.0.1:", port)
	ctx, cancel := context.WithTimeout(context.Background(), timeout)
	defer cancel()
	for {
		conn, err := pgx.Connect(ctx, address.String())
		if err == nil {
			_ = conn.Close(ctx)
			return address.String()
		}
		select {
		case <-ended:
			tb.Fatalf("pgbouncer ended: %s", output)
		case <-ctx.Done():
			tb.Fatal("pgbouncer does not answer: ", err)
		default:
			runtime.Gosched()
		}
	}
}

func isThere(path string) bool {
	_, err := os.Stat(path)
	return err == nil
}
