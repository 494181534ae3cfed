package authorization

import (
	"context"
	"errors"

	"github.com/durward-gateway/durward/internal/identity/logins"
	"github.com/durward-gateway/durward/internal/identity/websession"
	"github.com/durward-gateway/durward/modules/app/browsers"
	"github.com/durward-gateway/durward/modules/app/paths"
	"github.com/durward-gateway/durward/storage"
)

// consoleClient is the console's name among the clients of a user.
const consoleClient = "durward-console"

// console returns the console as a client. Its audience is one that [Server.Target] gives to no client.
func (s *Server) console() logins.Console {
	return logins.Console{ClientID: consoleClient, ClientName: "durward console", Resource: s.ConsoleAudience(), Lifetime: websession.Lifetime}
}

// ConsoleAudience returns the audience of the console's tokens: the API, without the servers and models behind the
// gateway.
func (s *Server) ConsoleAudience() string { return s.options.PublicURL + paths.API }

// LogInBrowser begins the login of a browser's session with the console, and returns its id. former is the id of the
// login that it replaces; "" for none.
func (s *Server) LogInBrowser(ctx context.Context, d logins.Draft, former string) (string, error) {
	if err := s.LogOutBrowser(ctx, d.OrganizationID, former); err != nil {
		return "", err
	}
	return s.LogInConsole(ctx, d, s.console())
}

// LogOutBrowser ends the login of a browser's session with the console; "" is none.
func (s *Server) LogOutBrowser(ctx context.Context, organization, login string) error {
	if login == "" {
		return nil
	}
	if _, err := s.options.Store.EndLogin(ctx, organization, login, false); err != nil && !errors.Is(err, storage.ErrNotFound) {
		return err
	}
	return nil
}

// BrowserToken makes an access token for the console in a browser. Its error is logins.ErrNoLogin when the user has to log
// in anew, or the store's.
func (s *Server) BrowserToken(ctx context.Context, user *browsers.User) (*logins.Tokens, error) {
	if user.Login == "" {
		return nil, logins.ErrNoLogin
	}
	return s.ConsoleToken(ctx, user.OrganizationID, user.UserID, user.Login, s.ConsoleAudience(), user.ProvenAt)
}
