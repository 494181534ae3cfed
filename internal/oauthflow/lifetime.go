package oauthflow

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Bounds of what is believed of a lifetime.
const (
	minLifetime = time.Second
	maxLifetime = 365 * 24 * time.Hour
)

// epoch is more seconds than any token lives: a larger number is a time since 1970.
const epoch = 1e9

// lifetime is how long a token lives from start on: expires_in, else a member that some providers have in its place. It is brought
// into minLifetime..maxLifetime; 0 when nobody said, or in a way that means nothing. Such a token is used until it is refused.
func lifetime(v strictjson.Value, start time.Time) time.Duration {
	for _, name := range []string{"expires_in", "expires", "expires_at", "expires_on"} {
		m, ok := v.Get(name)
		if !ok || m.Kind() == strictjson.Null {
			continue
		}
		seconds, ok := number(m)
		if !ok {
			continue
		}
		if name != "expires_in" && seconds >= epoch {
			seconds -= float64(start.Unix())
		}
		if seconds <= 0 {
			return 0
		}
		return time.Duration(min(max(seconds, minLifetime.Seconds()), maxLifetime.Seconds())) * time.Second
	}
	return 0
}

// number reads a number, or a text with one in it.
func number(m strictjson.Value) (float64, bool) {
	var written string
	switch m.Kind() {
	case strictjson.Number:
		written = m.Num()
	case strictjson.String:
		written = strings.TrimSpace(m.Str())
	default:
		return 0, false
	}
	n, err := strconv.ParseFloat(written, 64)
	// An overflow gives an infinity, which is clamped like any large number.
	return n, (err == nil || math.IsInf(n, 0)) && !math.IsNaN(n)
}
