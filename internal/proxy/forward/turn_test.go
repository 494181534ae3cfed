package forward

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"strings"
	"testing"
	"time"
)

// TestTurn checks that an answer that never waits gives way after its time, and a slow one only after each 64 KiB.
func TestTurn(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		name  string
		piece int           // bytes
		every time.Duration // between two pieces
		bytes int           // in all
		turns int           // number of turns that ended
	}{
		{"fast", 16 << 10, 10 * time.Microsecond, 32 << 20, 11}, // the first turn, and 20.5 ms
		{"fast in small pieces", 1 << 10, time.Microsecond, 8 << 20, 4},
		{"slow", 1 << 10, time.Millisecond, 1 << 20, 16},
		{"events", 100, time.Second, 60_000, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			var turn turn
			now, turns := time.Unix(1_800_000_000, 0), 0
			for carried := 0; carried < test.bytes; carried += test.piece {
				if turn.over(test.piece, func() time.Time { return now }) {
					turns++
				}
				now = now.Add(test.every)
			}
			if turns != test.turns {
				t.Errorf("%d turns, want %d", turns, test.turns)
			}
		})
	}
}

// TestAnswersTakeTurns checks that every way of carrying an answer ends its turns.
func TestAnswersTakeTurns(t *testing.T) {
	t.Parallel()
	for _, media := range []string{"text/event-stream", "application/octet-stream"} {
		f := New(Over(roundTrip(func(*http.Request) (*http.Response, error) {
			return &http.Response{
				StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {media}},
				ContentLength: -1, Body: io.NopCloser(strings.NewReader(strings.Repeat("data: 1\n\n", turnBytes/8))),
			}, nil
		})), Limits{})
		answer, err := f.Do(context.Background(), &Request{Method: http.MethodGet, URL: &url.URL{Scheme: "http", Host: "upstream.test"}})
		if err != nil {
			t.Fatal(err)
		}
		if err := answer.Relay(httptest.NewRecorder(), 1<<20); err != nil {
			t.Error(err)
		}
		if answer.body.turn.began.IsZero() {
			t.Errorf("no turn of %s ended", media)
		}
		answer.Close()
	}
}
