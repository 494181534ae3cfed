package tour

import (
	"context"
	"errors"
	"fmt"
	"net/http"
)

const limitsPath = "/api/llm-gateway/admin/rate-limits"

// reachLimit passes when a key that may call once in a minute is refused the second time. The limit is removed
// afterwards.
func reachLimit(ctx context.Context, w *walk) (detail []string, err error) {
	response, err := w.post(ctx, limitsPath, w.token, map[string]any{
		"name": "Tour", "scope_type": "api_key", "scope_id": w.key.id, "traffic_type": "llm", "requests_per_minute": 1,
	})
	if err != nil {
		return nil, err
	}
	got, err := read(response)
	if err != nil {
		return nil, err
	}
	var limit struct {
		ID string `json:"id"`
	}
	if err := got.expect(http.StatusOK, &limit); err != nil {
		return nil, err
	}
	detail = append(detail, fmt.Sprintf("POST %s {scope_type: api_key, requests_per_minute: 1} -> %d", limitsPath, got.status))
	defer func() {
		got, gone := w.ask(ctx, http.MethodDelete, limitsPath+"/"+limit.ID)
		if gone == nil && got.status != http.StatusOK && got.status != http.StatusNoContent {
			gone = got.unexpected()
		}
		err = errors.Join(err, gone)
	}()
	for _, want := range []int{http.StatusOK, http.StatusTooManyRequests} {
		response, err := w.key.ask(ctx, w, smallModel, "Hello?", false)
		if err != nil {
			return detail, err
		}
		got, err := read(response)
		if err != nil {
			return detail, err
		}
		line := fmt.Sprintf("POST %s with the key -> %d", chatPath, got.status)
		if after := response.Header.Get("Retry-After"); after != "" {
			line += fmt.Sprintf(" %s, Retry-After: %s seconds", errorCode(got), after)
		}
		detail = append(detail, line)
		switch {
		case got.status != want:
			return detail, fmt.Errorf("the answer is %d, not %d", got.status, want)
		case want == http.StatusTooManyRequests && response.Header.Get("Retry-After") == "":
			return detail, errors.New("the refusal does not say when to come again")
		}
	}
	return detail, nil
}
