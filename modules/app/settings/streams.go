package settings

import (
	"fmt"
	"strconv"
	"time"

	"github.com/caddyserver/caddy/v2"
)

// Streams bounds event streams: those of /sse, GET on /mcp, and subscriptions of MCP 2026-07-28. Calls whose answer is a
// stream end by themselves and are not counted. A zero member takes its default.
type Streams struct {
	// How many streams a user may have open at this node, over all servers. One more is answered 429. Default: 100.
	MaxPerUser int `json:"max_per_user,omitempty"`
	// How many streams may be open at this node, of all users. One more is answered 503. Default: 10000.
	Max int `json:"max,omitempty"`
	// How long an upstream may be silent in the middle of an answer, or on a stream of /sse; comments count as a sign of life.
	// A stream of GET and a subscription on /mcp may be silent without end. `read_timeout` in a handler's transport takes precedence over it. Default: 5m.
	Idle caddy.Duration `json:"idle,omitempty"`
	// How long calls may run on once the process is to exit; event streams end within half of it. Default: 30s.
	Drain caddy.Duration `json:"drain,omitempty"`
	// How long the process goes on as before once it is to exit, while /readyz answers 503: as long as load balancers take
	// to notice. Calls and streams have `drain` after it. Default: none.
	ExitDelay caddy.Duration `json:"exit_delay,omitempty"`
	// The time between signs of life on a quiet event stream, of /sse and of /mcp. Default: 15s.
	Heartbeat caddy.Duration `json:"heartbeat,omitempty"`
}

const (
	// maxStreams is the largest count: each stream has connections on both sides.
	maxStreams = 10_000_000
	// These are the bounds of the times. A heartbeat more often than once a second is load; one less often than once an
	// hour is useless.
	minStreamTime = time.Second
	maxStreamTime = 24 * time.Hour
)

const knownStreams = "max_per_user, max, idle, drain, exit_delay, heartbeat"

func (s *Streams) counts() map[string]*int {
	return map[string]*int{"max_per_user": &s.MaxPerUser, "max": &s.Max}
}

func (s *Streams) times() map[string]*caddy.Duration {
	return map[string]*caddy.Duration{"idle": &s.Idle, "drain": &s.Drain, "exit_delay": &s.ExitDelay, "heartbeat": &s.Heartbeat}
}

// Set sets the bound that word names, from a number or from a duration such as `5m`.
func (s *Streams) Set(word, value string) error {
	if count := s.counts()[word]; count != nil {
		if *count != 0 {
			return fmt.Errorf("%s may be given once", word)
		}
		n, err := strconv.Atoi(value)
		if err != nil || n < 1 || n > maxStreams {
			return fmt.Errorf("%s: %q is not a number between 1 and %d", word, value, maxStreams)
		}
		*count = n
		return nil
	}
	period := s.times()[word]
	if period == nil {
		return fmt.Errorf("unrecognized word %q in streams; known are %s", word, knownStreams)
	}
	if *period != 0 {
		return fmt.Errorf("%s may be given once", word)
	}
	d, err := caddy.ParseDuration(value)
	if err != nil || d < minStreamTime || d > maxStreamTime {
		return fmt.Errorf("%s: %q is not a time between 1s and 24h", word, value)
	}
	*period = caddy.Duration(d)
	return nil
}

// Check refuses values that Set would refuse. s may be nil.
func (s *Streams) Check() error {
	if s == nil {
		return nil
	}
	for word, count := range s.counts() {
		if *count < 0 || *count > maxStreams {
			return fmt.Errorf("streams: %s is %d, which is not between 1 and %d", word, *count, maxStreams)
		}
	}
	for word, period := range s.times() {
		if d := time.Duration(*period); d != 0 && (d < minStreamTime || d > maxStreamTime) {
			return fmt.Errorf("streams: %s is %v, which is not between 1s and 24h", word, d)
		}
	}
	return nil
}

// WithDefaults returns the bounds that are in force. s may be nil.
func (s *Streams) WithDefaults() Streams {
	var out Streams
	if s != nil {
		out = *s
	}
	counts, times := out.counts(), out.times()
	for word, standard := range map[string]int{"max_per_user": 100, "max": 10_000} {
		if *counts[word] == 0 {
			*counts[word] = standard
		}
	}
	for word, standard := range map[string]time.Duration{"idle": 5 * time.Minute, "drain": 30 * time.Second, "heartbeat": 15 * time.Second} {
		if *times[word] == 0 {
			*times[word] = caddy.Duration(standard)
		}
	}
	return out
}
