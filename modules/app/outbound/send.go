package outbound

import (
	"context"
	"errors"
	"net/http"

	"github.com/durward-gateway/durward/internal/credential/connection"
	"github.com/durward-gateway/durward/internal/proxy/forward"
)

// Rejected is told that the upstream answered 401 to a credential, see app.CredentialSource. It returns a fresh one when a
// refresh gave one.
type Rejected func(ctx context.Context, used connection.Credential) (connection.Credential, error)

// SendWith sends a request with the caller's credential, and once more when the upstream answered 401 and a refresh
// gave another credential: an upstream that asks for credentials has executed nothing. The error is
// connection.ErrNotConnected when the upstream refuses that one too. A 401 is never returned as an answer.
func SendWith(ctx context.Context, rejected Rejected, credential connection.Credential,
	send func(connection.Credential) (*forward.Response, error),
) (*forward.Response, error) {
	response, err := send(credential)
	if err != nil || response.Status != http.StatusUnauthorized {
		return response, err
	}
	response.Discard()
	fresh, err := rejected(ctx, credential)
	if err != nil {
		return nil, err
	}
	response, err = send(fresh)
	if err != nil || response.Status != http.StatusUnauthorized {
		return response, err
	}
	response.Discard()
	_, err = rejected(ctx, fresh)
	if errors.Is(err, connection.ErrNotConnected) {
		return nil, err
	}
	return nil, errors.Join(&connection.NotConnectedError{Reason: "the server refuses the stored credential"}, err)
}
