package tour

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"time"

	"github.com/durward-gateway/durward/cmd/commands/browser"
)

const (
	callbackPath = "/api/oauth/callback"
	accountField = "account" // of the demo third party's form
	pollInterval = 50 * time.Millisecond
)

// Values of connection_status.
const (
	statusConnected = "connected"
	statusError     = "error"
)

func (w *walk) connectionPath() string { return "/api/servers/" + w.server + "/connection" }

func listServers(ctx context.Context, w *walk) ([]string, error) {
	got, err := w.ask(ctx, http.MethodGet, "/api/servers")
	if err != nil {
		return nil, err
	}
	var page struct {
		Servers []struct {
			Slug   string `json:"slug"`
			Status string `json:"connection_status"`
		} `json:"data"`
	}
	if err := got.expect(http.StatusOK, &page); err != nil {
		return nil, err
	}
	detail := []string{fmt.Sprintf("GET /api/servers -> %d, %d server(s)", got.status, len(page.Servers))}
	found := false
	for _, s := range page.Servers {
		detail = append(detail, fmt.Sprintf("%s: connection %s", s.Slug, s.Status))
		if s.Slug == w.server {
			found, w.connected = true, s.Status == statusConnected
		}
	}
	if found {
		return detail, nil
	}
	return w.findServer(ctx, detail)
}

// findServer asks for the server by name, because it may be on a later page of the list.
func (w *walk) findServer(ctx context.Context, detail []string) ([]string, error) {
	got, err := w.ask(ctx, http.MethodGet, w.connectionPath())
	if err != nil {
		return detail, err
	}
	var connection struct {
		Status string `json:"status"`
	}
	if err := got.expect(http.StatusOK, &connection); err != nil {
		return detail, hint("Dev mode makes this server at its first start. `durward dev --reset` brings it back.", "there is no server %q: %w", w.server, err)
	}
	w.connected = connection.Status == statusConnected
	return append(detail, fmt.Sprintf("%s: connection %s", w.server, connection.Status)), nil
}

// textKept is shown when a user connected the account before the tour: the tour uses it and leaves it connected.
const textKept = "the account was connected before the tour, which uses it and leaves it as it is"

func connectUnlessKept(ctx context.Context, w *walk) ([]string, error) {
	if w.connected {
		return []string{textKept}, nil
	}
	return connect(ctx, w)
}

func disconnectUnlessKept(ctx context.Context, w *walk) ([]string, error) {
	if w.connected {
		return nil, errSkip
	}
	return disconnect(ctx, w)
}

func callAgainUnlessKept(ctx context.Context, w *walk) ([]string, error) {
	if w.connected {
		return nil, errSkip
	}
	return callAgain(ctx, w)
}

func disconnect(ctx context.Context, w *walk) ([]string, error) {
	got, err := w.ask(ctx, http.MethodDelete, w.connectionPath())
	if err != nil {
		return nil, err
	}
	if err := got.expect(http.StatusNoContent, nil); err != nil {
		return nil, err
	}
	status, err := w.connectionStatus(ctx)
	if err != nil {
		return nil, err
	}
	if status == statusConnected {
		return nil, errors.New("the gateway says that it is still connected")
	}
	return []string{
		fmt.Sprintf("DELETE %s -> %d; the gateway revoked the tokens at the third party and forgot them", w.connectionPath(), got.status),
		"connection: " + status,
	}, nil
}

func connect(ctx context.Context, w *walk) ([]string, error) {
	got, err := w.ask(ctx, http.MethodPost, "/api/servers/"+w.server+"/connect")
	if err != nil {
		return nil, err
	}
	var begun struct {
		AuthURL string `json:"auth_url"`
	}
	if err := got.expect(http.StatusOK, &begun); err != nil {
		return nil, err
	}
	login, err := url.Parse(begun.AuthURL)
	if err != nil || login.Host == "" {
		return nil, errors.New("the gateway sent no address to log in at")
	}
	detail := []string{fmt.Sprintf("POST /api/servers/%s/connect -> %d; it sends the user to %s with %s", w.server, got.status, browser.Plain(login), list(browser.Names(login)))}
	made, err := w.followPages(ctx, begun.AuthURL)
	detail = append(detail, made...)
	if err != nil {
		return detail, err
	}
	status, err := w.awaitConnected(ctx)
	if err != nil {
		return detail, err
	}
	return append(detail, "the gateway redeemed the code and keeps the tokens, encrypted; the browser never saw them", "connection: "+status), nil
}

// followPages does the user's part in the browser: agrees on the third party's page, and comes back.
func (w *walk) followPages(ctx context.Context, address string) ([]string, error) {
	pages, err := browser.New(w.Client, nil)
	if err != nil {
		return nil, err
	}
	page, err := pages.Open(ctx, address)
	detail := visits(w.Gateway, pages.Visits())
	seen := len(detail)
	if err != nil {
		return detail, err
	}
	form := page.FormWith(accountField)
	switch {
	case form == nil:
		return detail, fmt.Errorf("the third party shows no form with an account (status %d): %s", page.Status, page.Text)
	case form.Fields[accountField] == "":
		return detail, errors.New("the third party's form proposes no account")
	case w.account == "":
		w.account = form.Fields[accountField]
	}
	page, err = pages.Submit(ctx, page, form, map[string]string{accountField: w.account})
	detail = append(detail, "the user agrees, as "+w.account)
	detail = append(detail, visits(w.Gateway, pages.Visits())[seen:]...)
	if err != nil {
		return detail, err
	}
	if page.Status != http.StatusOK || browser.Plain(page.URL) != w.Gateway+callbackPath {
		return detail, fmt.Errorf("%s answered %d: %s %s", browser.Plain(page.URL), page.Status, page.Title, page.Text)
	}
	return append(detail, "the user reads: "+page.Title), nil
}

func (w *walk) awaitConnected(ctx context.Context) (string, error) {
	ticker := time.NewTicker(pollInterval)
	defer ticker.Stop()
	for {
		status, err := w.connectionStatus(ctx)
		if err != nil {
			return "", err
		}
		switch status {
		case statusConnected:
			return status, nil
		case statusError:
			return "", errors.New("the connection failed")
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			return "", fmt.Errorf("the connection is still %s: %w", status, ctx.Err())
		}
	}
}

func (w *walk) connectionStatus(ctx context.Context) (string, error) {
	got, err := w.ask(ctx, http.MethodGet, w.connectionPath())
	if err != nil {
		return "", err
	}
	var connection struct {
		Status string `json:"status"`
	}
	if err := got.expect(http.StatusOK, &connection); err != nil {
		return "", err
	}
	return connection.Status, nil
}
