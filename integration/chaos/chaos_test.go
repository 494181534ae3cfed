package chaos

import (
	"bufio"
	"errors"
	"io"
	"net"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.uber.org/goleak"
)

func TestMain(m *testing.M) { goleak.VerifyTestMain(m) }

// patient is the longest wait for an expected event, and quiet is the time for which no event must come.
const (
	patient = 30 * time.Second
	quiet   = 50 * time.Millisecond
)

// echo starts a server that says every line again.
func echo(t *testing.T) string {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	done := make(chan struct{})
	go func() {
		defer close(done)
		for {
			c, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer c.Close()
				_, _ = io.Copy(c, c)
			}()
		}
	}()
	t.Cleanup(func() { _ = listener.Close(); <-done })
	return listener.Addr().String()
}

type client struct {
	net.Conn
	t     *testing.T
	lines *bufio.Reader
}

func dial(t *testing.T, p *Proxy) *client {
	t.Helper()
	c, err := net.Dial("tcp", p.Addr())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	return &client{Conn: c, t: t, lines: bufio.NewReader(c)}
}

func (c *client) say(line string) {
	c.t.Helper()
	if _, err := io.WriteString(c, line+"\n"); err != nil {
		c.t.Fatal(err)
	}
}

func (c *client) hear(within time.Duration) (string, error) {
	if err := c.SetReadDeadline(time.Now().Add(within)); err != nil {
		c.t.Fatal(err)
	}
	line, err := c.lines.ReadString('\n')
	return strings.TrimSuffix(line, "\n"), err
}

func (c *client) want(line string) {
	c.t.Helper()
	if got, err := c.hear(patient); got != line {
		c.t.Fatalf("heard %q, %v instead of %q", got, err, line)
	}
}

func TestProxy(t *testing.T) {
	t.Parallel()
	p := New(t, echo(t))
	c := dial(t, p)
	c.say("one")
	c.want("one")

	p.Pause()
	p.Pause()
	c.say("two")
	late := dial(t, p)
	late.say("three")
	for _, silent := range []*client{c, late} {
		if got, err := silent.hear(quiet); err == nil || !isTimeout(err) {
			t.Errorf("heard %q, %v through a proxy that pauses", got, err)
		}
	}
	p.Resume()
	c.want("two")
	late.want("three")

	p.Delay(quiet)
	from := time.Now()
	c.say("four")
	c.want("four")
	if took := time.Since(from); took < 2*quiet {
		t.Errorf("both ways took %v", took)
	}
	p.Delay(0)

	p.Cut()
	for _, broken := range []*client{c, late} {
		if got, err := broken.hear(patient); !errors.Is(err, syscall.ECONNRESET) {
			t.Errorf("heard %q, %v on a connection that was cut", got, err)
		}
	}
	p.Refuse(true)
	// The reset may be there before the connection counts as made.
	if refused, err := net.Dial("tcp", p.Addr()); err == nil {
		defer func() { _ = refused.Close() }()
		_ = refused.SetReadDeadline(time.Now().Add(patient))
		if n, err := refused.Read(make([]byte, 1)); err == nil || isTimeout(err) {
			t.Errorf("read %d bytes, %v of a connection that was refused", n, err)
		}
	} else if isTimeout(err) {
		t.Error(err)
	}
	p.Refuse(false)
	again := dial(t, p)
	again.say("five")
	again.want("five")
	p.Pause()
	again.say("never heard") // and the end of the test does not wait for it
}

func isTimeout(err error) bool {
	var netError net.Error
	return errors.As(err, &netError) && netError.Timeout()
}

// TestKeep checks that messages of some kinds do not arrive, and those around them do.
func TestKeep(t *testing.T) {
	t.Parallel()
	p := NewPostgreSQL(t, echo(t))
	c := dial(t, p)
	message := func(kind byte, body string) string {
		return string([]byte{kind, 0, 0, 0, byte(4 + len(body))}) + body
	}
	c.say(message('Z', "first") + message('A', "heard") + message('C', "\n")[:5])
	c.want(message('Z', "first") + message('A', "heard") + message('C', "\n")[:5])
	p.Keep('A')
	c.say(message('Z', "then") + message('A', "kept") + message('A', "") + message('C', "\n")[:5])
	c.want(message('Z', "then") + message('C', "\n")[:5])
	p.Keep()
	c.say(message('A', "again") + message('C', "\n")[:5])
	c.want(message('A', "again") + message('C', "\n")[:5])
}

// TestCutInstead checks that a connection breaks at a message, which does not arrive.
func TestCutInstead(t *testing.T) {
	t.Parallel()
	p := NewPostgreSQL(t, echo(t))
	p.CutInstead(func(kind byte, body []byte) bool { return kind == 'C' && string(body) == "COMMIT ....\n" })
	// The length counts the end of the line, and is none.
	message := func(kind byte, body string) string { return string([]byte{kind, 0, 0, 0, 16}) + body }
	c := dial(t, p)
	c.say(message('C', "BEGIN ....."))
	c.want(message('C', "BEGIN ....."))
	c.say(message('C', "COMMIT ...."))
	if got, err := c.hear(patient); err == nil || isTimeout(err) {
		t.Errorf("heard %q, %v instead of the end", got, err)
	}
	p.CutInstead(nil)
	c = dial(t, p)
	c.say(message('C', "COMMIT ...."))
	c.want(message('C', "COMMIT ...."))
}

// TestCloses checks that the last bytes of an end arrive before its close does.
func TestCloses(t *testing.T) {
	t.Parallel()
	p := New(t, echo(t))
	c := dial(t, p)
	c.say("last words")
	c.want("last words")
	if err := c.CloseWrite(); err != nil {
		t.Fatal(err)
	}
	if got, err := c.hear(patient); !errors.Is(err, io.EOF) {
		t.Errorf("heard %q, %v after the end", got, err)
	}
	for deadline := time.After(patient); p.Open() > 0; {
		select {
		case <-deadline:
			t.Fatal("the proxy keeps the connection")
		case <-time.After(time.Millisecond):
		}
	}
}

// CloseWrite ends the client's half.
func (c *client) CloseWrite() error { return c.Conn.(*net.TCPConn).CloseWrite() }
