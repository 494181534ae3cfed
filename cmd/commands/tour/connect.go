package tour

import (
	"context"
	"errors"
	"fmt"
)

// ErrConnected says that there is nothing to connect.
var ErrConnected = errors.New("the account is connected already")

// Connect connects a user's account to a server, as a browser would: it logs in, follows the third party's page, and
// comes back. account names the account there; "" means the one that the page suggests. Errors: ErrConnected.
func Connect(ctx context.Context, o Options, server, email, account string) (string, error) {
	w := &walk{Options: o, people: make(map[string]*person), server: server}
	w.as(email)
	if account != "" {
		w.account = account
	}
	if _, err := logIn(ctx, w); err != nil {
		return "", err
	}
	status, err := w.connectionStatus(ctx)
	switch {
	case err != nil:
		return "", fmt.Errorf("looking for the server %q: %w", server, err)
	case status == statusConnected:
		return "", ErrConnected
	}
	if _, err := connect(ctx, w); err != nil {
		return "", err
	}
	return w.account, nil
}
