package tour

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"

	"github.com/durward-gateway/durward/internal/proxy/sse"
)

// readEvent opens the event stream, waits for its greeting and one change, and leaves. The demo third party sends the
// account's latest issue at once.
func readEvent(ctx context.Context, w *walk) ([]string, error) {
	const path = "/sse/" + serverSlug
	response, err := w.send(ctx, http.MethodGet, path, "text/event-stream")
	if err != nil {
		return nil, err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		body, _ := io.ReadAll(io.LimitReader(response.Body, maxRefusal)) // as much as there is
		return nil, answer{status: response.StatusCode, body: body}.unexpected()
	}
	detail := []string{fmt.Sprintf("GET %s -> %d", path, response.StatusCode)}
	events := sse.NewReader(response.Body, 0)
	for first := true; ; {
		event, err := events.Next()
		if errors.Is(err, io.EOF) {
			return detail, errors.New("the stream ended before an event came")
		}
		if err != nil {
			return detail, fmt.Errorf("reading the stream: %w", err)
		}
		if !event.HasData {
			continue
		}
		if first && event.Name != "connected" {
			return detail, fmt.Errorf("the stream began with %q, not with %q", event.Name, "connected")
		}
		first = false
		detail = append(detail, fmt.Sprintf("event %s: %s", event.Name, event.Data))
		switch event.Name {
		case "data_update":
			return detail, nil
		case "error", "status_change":
			return detail, errors.New("the stream ended before an event came")
		}
	}
}
