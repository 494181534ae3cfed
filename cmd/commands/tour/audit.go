package tour

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"slices"
)

// record is a row of the audit log, as far as the tour shows it.
type record struct {
	Tool     string `json:"tool"`
	Decision string `json:"decision"`
	Rule     string `json:"rule"`
	Outcome  string `json:"outcome"`
	Approval string `json:"approval_id"`
}

// readAudit finds the allowed, the held and the denied call in the log.
func readAudit(ctx context.Context, w *walk) ([]string, error) {
	if _, err := logIn(ctx, w); err != nil {
		return nil, err
	}
	const path = "/api/audit?kind=call&limit=20"
	got, err := w.ask(ctx, http.MethodGet, path)
	if err != nil {
		return nil, err
	}
	var page struct {
		Records []record `json:"data"`
	}
	if err := got.expect(http.StatusOK, &page); err != nil {
		return nil, err
	}
	detail := []string{fmt.Sprintf("GET %s -> %d", path, got.status)}
	for _, wanted := range []struct {
		what string
		is   func(record) bool
	}{
		{"allowed", func(r record) bool { return r.Tool == "add" && r.Decision == "allow" }},
		{"held", func(r record) bool { return r.Tool == deleteTool && r.Approval != "" }},
		{"denied", func(r record) bool { return r.Tool == createTool && r.Decision == "deny" }},
	} {
		at := slices.IndexFunc(page.Records, wanted.is)
		if at < 0 {
			return detail, errors.New("the log does not have the call that was " + wanted.what)
		}
		r := page.Records[at]
		detail = append(detail, fmt.Sprintf("%s: %s by rule %q, %s", r.Tool, r.Decision, r.Rule, r.Outcome))
	}
	return detail, nil
}
