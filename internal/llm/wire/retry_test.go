package wire

import (
	"net/http"
	"testing"
	"time"
)

// TestRetryAfter covers W40: a provider's time gives the same time, at most a day; an invalid one gives none.
func TestRetryAfter(t *testing.T) {
	now := time.Date(2026, 11, 25, 8, 0, 0, 0, time.UTC)
	const day = 24 * time.Hour
	for _, tc := range []struct {
		name   string
		header []string
		want   time.Duration
		ok     bool
	}{
		{"seconds", []string{"Retry-After", "17"}, 17 * time.Second, true},
		{"none to wait", []string{"Retry-After", "0"}, 0, true},
		{"a fraction", []string{"Retry-After", " 1.25 "}, 1250 * time.Millisecond, true},
		{"a week", []string{"Retry-After", "287441"}, day, true},
		{"a number that no integer holds", []string{"Retry-After", "99999999999999999999999999"}, day, true},
		{"a date", []string{"Retry-After", "Wed, 25 Nov 2026 08:02:05 GMT"}, 125 * time.Second, true},
		{"a date in RFC 850's form", []string{"Retry-After", "Wednesday, 25-Nov-26 08:02:05 GMT"}, 125 * time.Second, true},
		{"a date far away", []string{"Retry-After", "Fri, 25 Nov 2039 08:02:05 GMT"}, day, true},
		{"a date that has passed", []string{"Retry-After", "Wed, 25 Nov 2026 07:00:00 GMT"}, 0, false},
		{"negative", []string{"Retry-After", "-5"}, 0, false},
		{"an exponent", []string{"Retry-After", "1e9"}, 0, false},
		{"no number", []string{"Retry-After", "soon"}, 0, false},
		{"a point", []string{"Retry-After", "."}, 0, false},
		{"milliseconds go first", []string{"Retry-After-Ms", "1500", "Retry-After", "2"}, 1500 * time.Millisecond, true},
		{"milliseconds that are none", []string{"Retry-After-Ms", "x", "Retry-After", "2"}, 2 * time.Second, true},
		{"OpenAI's reset", []string{"X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "6m0s", "X-Ratelimit-Remaining-Tokens", "9", "X-Ratelimit-Reset-Tokens", "9h"}, 6 * time.Minute, true},
		{"the longer of two", []string{"X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "20ms", "X-Ratelimit-Remaining-Tokens", "0", "X-Ratelimit-Reset-Tokens", "7.66s"}, 7660 * time.Millisecond, true},
		{"Anthropic's reset", []string{"Anthropic-Ratelimit-Input-Tokens-Remaining", "0", "Anthropic-Ratelimit-Input-Tokens-Reset", "2026-11-25T08:00:30Z"}, 30 * time.Second, true},
		{"OpenRouter's reset", []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1795593605000"}, 5 * time.Second, true},
		{"seconds since 1970", []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1795593605"}, 5 * time.Second, true},
		{"seconds to a reset", []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "12"}, 12 * time.Second, true},
		{"a reset that has passed", []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "1700000000"}, 0, false},
		{"a reset without sense", []string{"X-Ratelimit-Remaining", "0", "X-Ratelimit-Reset", "9223372036854775807"}, 0, false},
		{"a negative duration", []string{"X-Ratelimit-Remaining-Requests", "0", "X-Ratelimit-Reset-Requests", "-6m"}, 0, false},
		{"something remains", []string{"X-Ratelimit-Remaining-Requests", "3", "X-Ratelimit-Reset-Requests", "6m0s"}, 0, false},
		{"nothing", nil, 0, false},
	} {
		t.Run(tc.name, func(t *testing.T) {
			h := make(http.Header)
			for i := 0; i < len(tc.header); i += 2 {
				h.Set(tc.header[i], tc.header[i+1])
			}
			if got, ok := RetryAfter(h.Get, now); got != tc.want || ok != tc.ok {
				t.Errorf("%v %v, want %v %v", got, ok, tc.want, tc.ok)
			}
		})
	}
}
