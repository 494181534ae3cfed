package oauth

import (
	"math"
	"strconv"
	"strings"
	"time"

	"github.com/durward-gateway/durward/internal/strictjson"
)

// Bounds of a lifetime. A value outside is set to the nearest bound.
const (
	minLifetime = time.Second
	maxLifetime = 365 * 24 * time.Hour
)

// epoch is longer than any token lives, in seconds. A larger number is a time since 1970.
const epoch = 1e9

// lifetime returns how long a token lives from start on. It reads expires_in, else a member that some providers have
// in its place, and brings the value into minLifetime..maxLifetime. It returns 0 when there is no value or a
// meaningless one; such a token is used until it is refused.
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

// number reads a number, or a string that holds one.
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
