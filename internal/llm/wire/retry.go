package wire

import (
	"net/http"
	"strconv"
	"strings"
	"time"
)

// MostRetryAfter bounds the time for which a provider can send clients away.
const MostRetryAfter = 24 * time.Hour

// resets lists the headers in which providers say when a limit is full again. Each has the header for the remaining
// amount of that limit.
var resets = [...]struct{ reset, remaining string }{
	{"X-Ratelimit-Reset-Requests", "X-Ratelimit-Remaining-Requests"}, // OpenAI and many others: 6m0s
	{"X-Ratelimit-Reset-Tokens", "X-Ratelimit-Remaining-Tokens"},
	{"X-Ratelimit-Reset", "X-Ratelimit-Remaining"},                                   // OpenRouter: milliseconds since 1970
	{"Anthropic-Ratelimit-Requests-Reset", "Anthropic-Ratelimit-Requests-Remaining"}, // RFC 3339
	{"Anthropic-Ratelimit-Tokens-Reset", "Anthropic-Ratelimit-Tokens-Remaining"},
	{"Anthropic-Ratelimit-Input-Tokens-Reset", "Anthropic-Ratelimit-Input-Tokens-Remaining"},
	{"Anthropic-Ratelimit-Output-Tokens-Reset", "Anthropic-Ratelimit-Output-Tokens-Remaining"},
}

// RetryAfter reads from the headers of a 429 or 503 the time after which a provider can be asked again, at most
// [MostRetryAfter]. It reports false when they have no usable value. Retry-After-Ms, which Azure also sends, is more
// exact than Retry-After (RFC 9110 section 10.2.3). Both apply to this answer, while the headers of limits only
// describe the limits: they count only where nothing remains of a limit. header takes canonical names.
func RetryAfter(header func(name string) string, now time.Time) (after time.Duration, ok bool) {
	if d, ok := amount(header("Retry-After-Ms"), time.Millisecond); ok {
		return d, true
	}
	if text := header("Retry-After"); text != "" {
		if d, ok := amount(text, time.Second); ok {
			return d, true
		}
		if at, err := http.ParseTime(text); err == nil {
			if d, ok := until(at, now); ok {
				return d, true
			}
		}
	}
	for _, limit := range resets {
		if strings.TrimSpace(header(limit.remaining)) != "0" {
			continue
		}
		if d, known := resetIn(header(limit.reset), now); known {
			after, ok = max(after, d), true
		}
	}
	return after, ok
}

// amount reads a decimal number of units, without a sign.
func amount(text string, unit time.Duration) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	whole, fraction, _ := strings.Cut(text, ".")
	if whole == "" || !digits(whole) || !digits(fraction) {
		return 0, false
	}
	if len(whole) > 12 { // millennia
		return MostRetryAfter, true
	}
	n, err := strconv.ParseFloat(text, 64)
	if err != nil {
		return 0, false
	}
	return time.Duration(min(n*float64(unit), float64(MostRetryAfter))), true
}

func digits(s string) bool { return strings.Trim(s, "0123456789") == "" }

// until returns the time from now to at. A time in the past gives nothing: one of the clocks is wrong.
func until(at, now time.Time) (time.Duration, bool) {
	d := at.Sub(now)
	return min(d, MostRetryAfter), d > 0
}

// resetIn reads the time to a reset: RFC 3339, a duration (6m0s), seconds, or seconds or milliseconds since 1970.
func resetIn(text string, now time.Time) (time.Duration, bool) {
	text = strings.TrimSpace(text)
	if at, err := time.Parse(time.RFC3339, text); err == nil {
		return until(at, now)
	}
	if n, err := strconv.ParseInt(text, 10, 64); err == nil {
		switch {
		case n >= 1e15:
			return 0, false
		case n >= 1e12:
			return until(time.UnixMilli(n), now)
		case n >= 1e9:
			return until(time.Unix(n, 0), now)
		}
	}
	if d, ok := amount(text, time.Second); ok {
		return d, true
	}
	d, err := time.ParseDuration(text)
	return min(d, MostRetryAfter), err == nil && d > 0
}
