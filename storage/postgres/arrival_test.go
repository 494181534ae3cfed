package postgres

import (
	"io"
	"net"
	"net/url"
	"sync"
	"testing"

	"github.com/durward-gateway/durward/storage/postgres/pgtest"
)

// TestArrivalCloses checks that a closed arrival can be opened again at once, although the database has not noticed
// yet that the connection which held the lock is gone.
func TestArrivalCloses(t *testing.T) {
	t.Parallel()
	dsn := pgtest.Database(t)
	a, err := OpenArrival(t.Context(), unnoticed(t, dsn), Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	if err := a.Close(); err != nil {
		t.Fatal(err)
	}
	again, err := OpenArrival(t.Context(), dsn, Options{Timeout: patient})
	if err != nil {
		t.Fatal(err)
	}
	if err := again.Close(); err != nil {
		t.Error(err)
	}
}

// unnoticed returns the address of a way to the database on which the end of a connection, and the client's word of it, arrive
// when the test ends.
func unnoticed(t *testing.T, dsn string) string {
	t.Helper()
	to, err := url.Parse(dsn)
	if err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	var running sync.WaitGroup
	ended := make(chan struct{})
	t.Cleanup(func() {
		_ = listener.Close()
		close(ended)
		running.Wait()
	})
	database := to.Host
	running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("tcp", database)
			if err != nil {
				_ = client.Close()
				continue
			}
			running.Go(func() { _, _ = io.Copy(withoutTerminate{server}, struct{ io.Reader }{client}) })
			running.Go(func() { _, _ = io.Copy(client, server) })
			running.Go(func() {
				<-ended
				_ = server.Close()
				_ = client.Close()
			})
		}
	})
	to.Host = listener.Addr().String()
	return to.String()
}

// withoutTerminate drops the message Terminate, which pgx sends by itself.
type withoutTerminate struct{ to io.Writer }

func (w withoutTerminate) Write(p []byte) (int, error) {
	if len(p) == 5 && p[0] == 'X' {
		return len(p), nil
	}
	return w.to.Write(p)
}
