package valkey

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/durward-gateway/durward/internal/ratelimit/cluster/clustertest"
	"github.com/durward-gateway/durward/internal/ratelimit/cluster/valkey/valkeytest"
	"github.com/durward-gateway/durward/storage"
)

// meddler stands between a client and a server, and changes scripts' answers as a test says.
type meddler struct {
	listener net.Listener
	server   string
	running  sync.WaitGroup

	mu     sync.Mutex
	meddle func(answer []byte) [][]byte // returns the replacement; nil: the answer itself
	opened int
	open   []net.Conn
}

func newMeddler(t *testing.T, s *valkeytest.Server) *meddler {
	t.Helper()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	m := &meddler{listener: listener, server: strings.TrimPrefix(s.Address(), "unix://")}
	m.running.Go(func() {
		for {
			client, err := listener.Accept()
			if err != nil {
				return
			}
			server, err := net.Dial("unix", m.server)
			if err != nil {
				_ = client.Close()
				continue
			}
			m.mu.Lock()
			m.opened++
			m.open = append(m.open, client, server)
			m.mu.Unlock()
			m.running.Go(func() {
				_, _ = io.Copy(server, client)
				_ = server.Close()
			})
			m.running.Go(func() {
				m.forward(client, server)
				_ = client.Close()
			})
		}
	})
	t.Cleanup(func() {
		_ = listener.Close()
		m.mu.Lock()
		for _, c := range m.open {
			_ = c.Close()
		}
		m.mu.Unlock()
		m.running.Wait()
	})
	return m
}

func (m *meddler) do(meddle func(answer []byte) [][]byte) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.meddle = meddle
}

func (m *meddler) connections() int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.opened
}

func (m *meddler) forward(client io.Writer, server io.Reader) {
	r := bufio.NewReader(server)
	for {
		var frame bytes.Buffer
		if readFrame(r, &frame) != nil {
			return
		}
		out := [][]byte{frame.Bytes()}
		// A script's answer is a list that begins with a number; the answers to a connection's first commands are not.
		if _, elements, _ := bytes.Cut(frame.Bytes(), []byte("\n")); frame.Bytes()[0] == '*' && bytes.HasPrefix(elements, []byte(":")) {
			m.mu.Lock()
			meddle := m.meddle
			m.mu.Unlock()
			if meddle != nil {
				out = meddle(frame.Bytes())
			}
		}
		for _, b := range out {
			if _, err := client.Write(b); err != nil {
				return
			}
		}
	}
}

// readFrame reads one whole answer (https://redis.io/docs/latest/develop/reference/protocol-spec/).
func readFrame(r *bufio.Reader, out *bytes.Buffer) error {
	line, err := r.ReadBytes('\n')
	if err != nil {
		return err
	}
	out.Write(line)
	n, _ := strconv.Atoi(strings.TrimSpace(string(line[1:])))
	switch line[0] {
	case '$', '=', '!':
		_, err = io.CopyN(out, r, int64(max(n+2, 0)))
	case '%':
		n *= 2
		fallthrough
	case '*', '~', '>':
		for range n {
			if err := readFrame(r, out); err != nil {
				return err
			}
		}
	}
	return err
}

// desyncKeys is the number of counters, each of which holds another value.
const desyncKeys = 8

func desyncKey(i int) (k storage.CounterKey) {
	copy(k[:], "group-group-grou")
	copy(k[16:], "member-member-"+strconv.Itoa(10+i))
	return k
}

func desyncValue(i int) int64 { return int64(1000 * (i + 1)) }

// desynced holds counters behind a meddler.
type desynced struct {
	*Counters
	epoch storage.CounterEpoch
}

// openDesync makes counters behind a meddler, and charges each once.
func openDesync(t *testing.T) (desynced, *meddler) {
	t.Helper()
	m := newMeddler(t, valkeytest.New(t))
	c, err := New("valkey://" + m.listener.Addr().String())
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = c.Close() })
	epoch := clustertest.Epoch(t, c)
	for i := range desyncKeys {
		_, ok, err := c.Charge(t.Context(), epoch, []storage.CounterCharge{{Key: desyncKey(i), Amount: desyncValue(i), Limit: 1 << 40}}, make([]storage.CounterState, 1))
		if err != nil || !ok {
			t.Fatal(ok, err)
		}
	}
	return desynced{c, epoch}, m
}

// askDesync looks at one counter in one of two ways. An answer that belongs to another counter fails the test.
func askDesync(ctx context.Context, t *testing.T, c desynced, i int) error {
	t.Helper()
	var got int64
	var err error
	if i%2 == 0 {
		used := make([]int64, 1)
		err, got = c.Used(ctx, c.epoch, []storage.CounterKey{desyncKey(i)}, used), used[0]
	} else {
		states := make([]storage.CounterState, 1)
		_, err = c.Look(ctx, c.epoch, []storage.CounterCharge{{Key: desyncKey(i), Limit: 1 << 40}}, states)
		got = states[0].Used
	}
	if err == nil && got != desyncValue(i) {
		t.Errorf("counter %d holds %d, and %d was answered", i, desyncValue(i), got)
	}
	return err
}

// TestDesync covers Z-R02: an answer that is swallowed, repeated, swapped, or another client's never counts for another
// counter. The connection is closed, and the next one is in step.
func TestDesync(t *testing.T) {
	t.Parallel()
	for _, fault := range []struct {
		name string
		make func() func(answer []byte) [][]byte
	}{
		{"swallowed", func() func([]byte) [][]byte {
			n := 0
			return func(answer []byte) [][]byte {
				if n++; n == 3 {
					return nil
				}
				return [][]byte{answer}
			}
		}},
		{"twice", func() func([]byte) [][]byte {
			n := 0
			return func(answer []byte) [][]byte {
				if n++; n == 3 {
					return [][]byte{answer, answer}
				}
				return [][]byte{answer}
			}
		}},
		{"exchanged", func() func([]byte) [][]byte {
			n, held := 0, []byte(nil)
			return func(answer []byte) [][]byte {
				switch n++; n {
				case 3:
					held = answer
					return nil
				case 4:
					return [][]byte{answer, held}
				}
				return [][]byte{answer}
			}
		}},
		{"one behind", func() func([]byte) [][]byte {
			last := []byte("*2\r\n:1\r\n:77\r\n") // the answer to another client, which numbers its questions too
			return func(answer []byte) (out [][]byte) {
				out, last = [][]byte{last}, answer
				return out
			}
		}},
	} {
		t.Run(fault.name, func(t *testing.T) {
			t.Parallel()
			c, m := openDesync(t)
			before := m.connections()
			// The client library may have several connections at a time.
			var alone sync.Mutex
			meddle := fault.make()
			m.do(func(answer []byte) [][]byte {
				alone.Lock()
				defer alone.Unlock()
				return meddle(answer)
			})
			for m.connections() == before && t.Context().Err() == nil {
				var asking sync.WaitGroup
				for i := range desyncKeys {
					asking.Go(func() { _ = askDesync(t.Context(), t, c, i) })
				}
				asking.Wait()
			}
			m.do(nil)
			for i := range desyncKeys {
				for askDesync(t.Context(), t, c, i) != nil && t.Context().Err() == nil {
					runtime.Gosched() // it connects meanwhile
				}
			}
		})
	}
}

// TestLateAnswer covers Z-R02: an answer that comes after its question was given up does not count for the next
// question on the same connection.
func TestLateAnswer(t *testing.T) {
	t.Parallel()
	c, m := openDesync(t)
	before := m.connections()
	arrived, late := make(chan struct{}, 1), make(chan struct{})
	m.do(func(answer []byte) [][]byte {
		select {
		case arrived <- struct{}{}:
		default:
		}
		<-late
		return [][]byte{answer}
	})
	ctx, cancel := context.WithCancel(t.Context())
	given := make(chan error, 1)
	go func() { given <- askDesync(ctx, t, c, 0) }()
	<-arrived
	cancel()
	if err := <-given; !errors.Is(err, context.Canceled) {
		t.Fatalf("it was given up: %v", err)
	}
	var asking sync.WaitGroup
	for i := 1; i < desyncKeys; i++ {
		asking.Go(func() {
			if err := askDesync(t.Context(), t, c, i); err != nil {
				t.Errorf("counter %d: %v", i, err)
			}
		})
	}
	m.do(nil)
	close(late)
	asking.Wait()
	if err := askDesync(t.Context(), t, c, 0); err != nil {
		t.Error(err)
	}
	if n := m.connections(); n != before {
		t.Errorf("%d connections, not %d: the late answer came on one that was given up", n, before)
	}
}

// TestNumbers checks that two clients number their questions differently, in case a proxy mixes up their answers.
func TestNumbers(t *testing.T) {
	t.Parallel()
	seen := make(map[int64]bool)
	for range 10 {
		c, err := New("valkey://127.0.0.1:1")
		if err != nil {
			t.Fatal(err)
		}
		seen[c.number.Load()/1e9] = true
	}
	if len(seen) < 9 {
		t.Errorf("questions are counted from %v", seen)
	}
}

// TestUnasked covers Z-R02: an answer without a question ends the connection, and not the process.
func TestUnasked(t *testing.T) {
	t.Parallel()
	for name, answers := range map[string]string{
		"two":               ":1\r\n:2\r\n",
		"a list and one":    "*2\r\n$3\r\n:1\r\r\n*-1\r\n+OK\r\n",
		"a map and a list":  "%1\r\n$1\r\na\r\n*0\r\n*1\r\n:7\r\n",
		"attributes before": "|1\r\n+a\r\n+b\r\n:1\r\n-ERR 9\r\n",
		"pushed between":    ">2\r\n+invalidate\r\n_\r\n:1\r\n>1\r\n+x\r\n$-1\r\n",
	} {
		for size := 1; size <= len(answers); size++ {
			c := &inStep{Conn: &pieces{text: answers, size: size}}
			for _, b := range []byte("*1\r\n$4\r\nPING\r\n") {
				if _, err := c.Write([]byte{b}); err != nil {
					t.Fatal(err)
				}
			}
			read, err := io.ReadAll(c)
			if !errors.Is(err, errUnasked) || !strings.HasPrefix(answers, string(read)) || len(read) >= len(answers) || len(read) == 0 {
				t.Errorf("%s, in pieces of %d: %q, %v", name, size, read, err)
			}
		}
	}
}

// pieces is a connection on which a text arrives in pieces.
type pieces struct {
	net.Conn

	text string
	size int
}

func (p *pieces) Write(b []byte) (int, error) { return len(b), nil }

func (p *pieces) Read(b []byte) (int, error) {
	if p.text == "" {
		return 0, io.EOF
	}
	n := copy(b, p.text[:min(p.size, len(p.text))])
	p.text = p.text[n:]
	return n, nil
}
