package tour

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"time"

	"github.com/google/uuid"

	"github.com/durward-gateway/durward/cmd/commands/browser"
	"github.com/durward-gateway/durward/cmd/commands/login"
	"github.com/durward-gateway/durward/modules/devidp/clients"
	"github.com/durward-gateway/durward/modules/devidp/idp"
)

// logIn logs the user in with the client that stands for an agent.
func logIn(ctx context.Context, w *walk) ([]string, error) { return logInWith(ctx, w, clients.Agent) }

func logInWith(ctx context.Context, w *walk, client string) ([]string, error) {
	gateway, err := login.Find(ctx, w.Client, w.Gateway)
	if err != nil {
		var unreachable *login.UnreachableError
		if errors.As(err, &unreachable) || errors.Is(err, login.ErrNotDevelopment) {
			return nil, hint("Start `durward dev` in another terminal, or say with --url where it is.", "%w", err)
		}
		return nil, err
	}
	session, err := gateway.User(ctx, w.email, client)
	if err != nil {
		return nil, err
	}
	w.token = session.Token
	detail := tell(nil, "the client "+client+" opens the gateway, which sends the user on to the company's identity provider, as its client "+idp.Client, w.Gateway, session.Begun)
	detail = tell(detail, "the user logs in there with the company's account, and comes back to the gateway", w.Gateway, session.Entered)
	detail = tell(detail, "the gateway asks: "+session.Question+" The user agrees to the client", w.Gateway, session.Agreed)
	detail = append(detail, "the gateway sent back "+list(session.Returned)+"; the code and its PKCE verifier bought an access token of the gateway's")
	claims, err := describeClaims(session.Token.Reveal(), w.Now())
	if err != nil {
		return detail, err
	}
	return append(detail, "the token says: "+claims, "roles and groups are not in it: the gateway keeps them with the login, sid"), nil
}

// tell adds what happened, and the requests that it took.
func tell(detail []string, what, gateway string, made []browser.Visit) []string {
	return append(append(detail, what), visits(gateway, made)...)
}

func visits(gateway string, made []browser.Visit) []string {
	var lines []string
	for _, v := range made {
		line := fmt.Sprintf("%s %s -> %d", v.Method, strings.TrimPrefix(v.URL, gateway), v.Status)
		if len(v.Parameters) > 0 {
			line += ", with " + list(v.Parameters)
		}
		lines = append(lines, line)
	}
	return lines
}

func list(names []string) string { return strings.Join(names, ", ") }

// describeClaims lists the names of a token's claims and the kind of each value. The token is not verified: the
// gateway does that.
func describeClaims(token string, now time.Time) (string, error) {
	parts := strings.Split(token, ".")
	if len(parts) != 3 {
		return "", errors.New("the access token is not a JWT")
	}
	payload, err := base64.RawURLEncoding.DecodeString(parts[1])
	if err != nil {
		return "", errors.New("the access token is not a JWT")
	}
	var claims map[string]any
	if json.Unmarshal(payload, &claims) != nil {
		return "", errors.New("the access token is not a JWT")
	}
	var described []string
	for _, name := range slices.Sorted(maps.Keys(claims)) {
		described = append(described, name+" ("+shape(name, claims[name], now)+")")
	}
	return list(described), nil
}

func shape(name string, value any, now time.Time) string {
	switch v := value.(type) {
	case []any:
		return fmt.Sprintf("list of %d", len(v))
	case float64:
		if name == "exp" {
			return "in " + time.Unix(int64(v), 0).Sub(now).Round(time.Minute).String()
		}
		return "time"
	case string:
		if _, err := uuid.Parse(v); err == nil {
			return "uuid"
		}
		if strings.HasPrefix(v, "http://") || strings.HasPrefix(v, "https://") {
			return "address"
		}
		return "text"
	case bool:
		return "yes or no"
	default:
		return "object"
	}
}
