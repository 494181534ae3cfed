package oauth

import (
	"errors"
	"strings"
	"testing"
	"time"
)

// TestAnswers checks the table of docs/providers.md: real providers' answers, as their documentation shows them, and
// their meaning.
func TestAnswers(t *testing.T) {
	const hour = time.Hour
	for _, tc := range []struct {
		name   string
		status int
		body   string
		class  Class
		// Of a good answer; refresh also of an unusable one.
		refresh, scope string
		left           time.Duration
		code           string // of a refusal
	}{
		{name: "RFC 6749", status: 200, body: `{"access_token":"a","token_type":"Bearer","expires_in":3600,"refresh_token":"r2","scope":"x y"}`, refresh: "r2", scope: "x y", left: hour},
		{name: "W10 form", status: 200, body: "access_token=a&token_type=Bearer&refresh_token=r2&expires_in=3600", refresh: "r2", left: hour},
		{name: "W10 form with a line end", status: 200, body: "access_token=a&token_type=bearer&scope=repo%2Cuser\r\n", scope: "repo user"},
		{name: "W10 Facebook of old", status: 200, body: "access_token=a&expires=5183814", left: 5183814 * time.Second},
		{name: "Facebook", status: 200, body: `{"access_token":"a","token_type":"bearer","expires_in":5183814}`, left: 5183814 * time.Second},
		{name: "W11 Slack, a user", status: 200, body: `{"ok":true,"access_token":"a","token_type":"user","scope":"a,b"}`, scope: "a b"},
		{name: "W11 Slack, a bot", status: 200, body: `{"ok":true,"access_token":"a","token_type":"bot","scope":"a","authed_user":{"id":"U1"}}`, scope: "a"},
		{name: "W11 Slack, user_scope", status: 200, body: `{"ok":true,"authed_user":{"id":"U1","access_token":"a","token_type":"user","scope":"a,b","refresh_token":"r2","expires_in":3600}}`, refresh: "r2", scope: "a b", left: hour},
		{name: "Shopify, no type", status: 200, body: `{"access_token":"a","scope":"write_orders,read_customers"}`, scope: "write_orders read_customers"},
		{name: "Salesforce, no lifetime", status: 200, body: `{"access_token":"a","refresh_token":"r2","signature":"s","scope":"api","instance_url":"https://x.my.salesforce.example","id":"https://login.example/id","token_type":"Bearer","issued_at":"1764050000000"}`, refresh: "r2", scope: "api"},
		{name: "Zoom", status: 200, body: `{"access_token":"a","token_type":"bearer","refresh_token":"r2","expires_in":3600,"scope":"user:read:admin","api_url":"https://api.zoom.example"}`, refresh: "r2", scope: "user:read:admin", left: hour},
		{name: "LinkedIn, no type", status: 200, body: `{"access_token":"a","expires_in":3600,"refresh_token":"r2","refresh_token_expires_in":525600,"scope":"openid,email"}`, refresh: "r2", scope: "openid email", left: hour},
		{name: "Stripe", status: 200, body: `{"access_token":"a","livemode":false,"refresh_token":"r2","token_type":"bearer","stripe_publishable_key":"pk","stripe_user_id":"acct","scope":"express"}`, refresh: "r2", scope: "express"},
		{name: "Bitbucket, scopes", status: 200, body: `{"access_token":"a","expires_in":7200,"refresh_token":"r2","scopes":"repository pullrequest","state":"authorization_code","token_type":"bearer"}`, refresh: "r2", scope: "repository pullrequest", left: 2 * hour},
		{name: "Twitch, a list of scopes", status: 200, body: `{"access_token":"a","expires_in":3600,"refresh_token":"r2","scope":["chat:read"],"token_type":"bearer"}`, refresh: "r2", scope: "chat:read", left: hour},
		{name: "Strava, a time", status: 200, body: `{"token_type":"Bearer","expires_at":1767326645,"refresh_token":"r2","access_token":"a"}`, refresh: "r2", left: hour},
		{name: "Entra ID of old, texts", status: 200, body: `{"token_type":"Bearer","expires_in":"3600","ext_expires_in":"0","expires_on":"1767326645","access_token":"a","refresh_token":"r2"}`, refresh: "r2", left: hour},
		{name: "HubSpot", status: 200, body: `{"token_type":"bearer","refresh_token":"r2","access_token":"a","hub_id":1,"scopes":["oauth"],"expires_in":1800}`, refresh: "r2", scope: "oauth", left: hour / 2},
		{name: "Apigee", status: 200, body: `{"access_token":"a","token_type":"BearerToken","expires_in":"3599.0"}`, left: 3599 * time.Second},
		{name: "SAP and Entra ID, a text", status: 200, body: `{"access_token":"a","token_type":"Bearer","expires_in":"5250","ext_expires_in":"5250","not_before":"1759489561","scope":"manage"}`, scope: "manage", left: 5250 * time.Second},
		{name: "a refresh that rotates nothing", status: 200, body: `{"access_token":"a","token_type":"Bearer","expires_in":3600,"refresh_token":null,"scope":""}`, left: hour},
		{name: "0 in a form", status: 200, body: "access_token=a&token_type=Bearer&expires_in=0"},
		{name: "a lifetime that goes on as text, in a form", status: 200, body: "access_token=a&token_type=Bearer&expires_in=3600abc"},
		{name: "no errors", status: 200, body: `{"access_token":"a","token_type":"Bearer","error":null,"error_description":""}`},
		{name: "202 and a byte order mark", status: 202, body: "\xef\xbb\xbf{\"access_token\":\"a\",\"token_type\":\"Bearer\"}"},

		{name: "W11 DPoP", status: 200, body: `{"access_token":"a","token_type":"DPoP","refresh_token":"r2"}`, class: Refused, refresh: "r2"},
		{name: "W11 mac", status: 200, body: `access_token=a&token_type=mac&refresh_token=r2`, class: Refused, refresh: "r2"},
		{name: "a new refresh token alone", status: 200, body: `{"refresh_token":"r2"}`, class: Refused, refresh: "r2"},
		{name: "a new refresh token and an access token that is none", status: 200, body: `{"refresh_token":"r2","access_token":{"value":"a"}}`, class: Refused, refresh: "r2"},
		{name: "W11 Slack, DPoP of a user", status: 200, body: `{"ok":true,"authed_user":{"access_token":"a","token_type":"DPoP","refresh_token":"r2"}}`, class: Refused, refresh: "r2"},
		{name: "W11 Slack, a user's refresh token alone", status: 200, body: `{"ok":true,"authed_user":{"id":"U1","refresh_token":"r2"}}`, class: Refused, refresh: "r2"},
		{name: "W11 Slack, a user's token that is none", status: 200, body: `{"ok":true,"authed_user":{"access_token":1,"refresh_token":"r2"}}`, class: Refused, refresh: "r2"},
		{name: "W11 Slack, both hand one out", status: 200, body: `{"ok":true,"refresh_token":"outer","authed_user":{"access_token":"a","token_type":"DPoP","refresh_token":"r2"}}`, class: Refused, refresh: "r2"},
		{name: "W11 Slack, a bot's", status: 200, body: `{"ok":true,"access_token":"a","token_type":"DPoP","refresh_token":"r2","authed_user":{"refresh_token":"inner"}}`, class: Refused, refresh: "r2"},
		{name: "nothing", status: 204, class: Refused},
		{name: "a page", status: 200, body: "<html>access_token=a&token_type=Bearer</html>", class: Refused},
		{name: "access_token twice in a form", status: 200, body: "access_token=a&access_token=b", class: Refused},
		{name: "a form with a token that ends the header", status: 200, body: "access_token=a%0d%0aX-Evil:+b", class: Refused},

		{name: "W12 Slack", status: 200, body: `{"ok":false,"error":"invalid_code"}`, class: Refused, code: "invalid_code"},
		{name: "W12 Slack without words", status: 200, body: `{"ok":false,"access_token":"a"}`, class: Refused},
		{name: "W12 GitHub in a form", status: 200, body: "error=bad_refresh_token&error_description=The+refresh+token+passed+is+incorrect+or+expired.", class: Refused, code: "bad_refresh_token"},
		{name: "W12 an error beside a token", status: 200, body: `{"access_token":"a","token_type":"Bearer","error":"invalid_scope"}`, class: Refused, code: "invalid_scope"},
		{name: "W12 Facebook", status: 400, body: `{"error":{"message":"Error validating access token","type":"OAuthException","code":190}}`, class: Refused},
		{name: "W12 invalid_request", status: 400, body: `{"error":"invalid_request","error_description":"refresh_token is invalid"}`, class: Refused, code: "invalid_request"},
		{name: "W12 HubSpot", status: 400, body: `{"status":"BAD_REFRESH_TOKEN","message":"missing or unknown refresh token"}`, class: Refused},
		{name: "W12 Zoom", status: 401, body: `{"reason":"Invalid Token!","error":"invalid_request"}`, class: Refused, code: "invalid_request"},
		{name: "W12 a plain 401", status: 401, class: Refused},
		{name: "W12 a 403 with a page", status: 403, body: "<html>", class: Refused},
		{name: "W12 Supabase", status: 400, body: `{"code":400,"error_code":"refresh_token_not_found","msg":"Invalid Refresh Token: Refresh Token Not Found"}`, class: Refused},
		{name: "W12 Supabase without its secret", status: 422, body: `{"message":"Required parameter: client_secret"}`, class: Refused},
		{name: "W12 NestJS", status: 400, body: `{"statusCode":400,"message":["client_id should not be null"],"error":"Bad Request"}`, class: Refused},
		{name: "W12 a sentence for a code", status: 400, body: `{"error":"Invalid refresh token"}`, class: Refused},
		{name: "W12 404", status: 404, body: "Not Found", class: Refused},

		{name: "408", status: 408, class: Later},
		{name: "429", status: 429, body: `{"ok":false,"error":"ratelimited"}`, class: Later},
		{name: "500 with a refusal", status: 500, body: `{"error":"invalid_grant"}`, class: Later},
		{name: "503 with a page", status: 503, body: "<html>", class: Later},
		{name: "temporarily_unavailable", status: 400, body: `{"error":"temporarily_unavailable"}`, class: Later},
		{name: "server_error in a 200", status: 200, body: `{"error":"server_error"}`, class: Later},
	} {
		t.Run(tc.name, func(t *testing.T) {
			got, err := judgeTokens(tc.status, []byte(tc.body), start)
			if ClassOf(err) != tc.class {
				t.Fatalf("class %d (%v), want %d", ClassOf(err), err, tc.class)
			}
			if tc.class != Good {
				if r := HandedOut(err).Reveal(); r != tc.refresh {
					t.Errorf("handed out %q", r)
				}
				if Code(err) != tc.code {
					t.Errorf("code %q", Code(err))
				}
				return
			}
			var left time.Duration
			if !got.ExpiresAt.IsZero() {
				left = got.ExpiresAt.Sub(start)
			}
			if got.Access.Reveal() != "a" || got.Refresh.Reveal() != tc.refresh || got.Scope != tc.scope || left != tc.left {
				t.Errorf("got %q, refresh %q, scope %q, %v left", got.Access.Reveal(), got.Refresh.Reveal(), got.Scope, left)
			}
		})
	}
}

// TestAnswerLabels checks that the same answer means the same with every Content-Type, and with none.
func TestAnswerLabels(t *testing.T) {
	for _, label := range []string{"application/json", "text/plain", "text/html", "application/x-www-form-urlencoded", "text/javascript", "nonsense", ""} {
		for _, body := range []string{`{"access_token":"a","token_type":"Bearer"}`, "access_token=a&token_type=Bearer"} {
			f := newFake(t, map[string]reply{"POST /token": {200, map[string]string{"Content-Type": label}, body}})
			if got, err := exchange(t, newClient(), f.URL, ClientAuth{ID: "id", Method: AuthNone}); err != nil || got.Access.Reveal() != "a" {
				t.Errorf("%q %s: %v", label, body, err)
			}
		}
	}
}

// TestAnswersKeepSecrets checks that a refusal in words that are no code does not show what was sent, either.
func TestAnswersKeepSecrets(t *testing.T) {
	for _, body := range []string{
		`{"error":"bad token REFRESH-CANARY"}`, `{"message":"bad token REFRESH-CANARY"}`, "error=REFRESH-CANARY&error_description=REFRESH-CANARY",
		`{"error":{"message":"REFRESH-CANARY"}}`,
	} {
		_, err := judgeTokens(400, []byte(body), start, "REFRESH-CANARY")
		refused, ok := errors.AsType[*ProtocolError](err)
		if !ok {
			t.Fatalf("%s: %v", body, err)
		}
		if strings.Contains(refused.Error()+refused.Description+refused.Code, "CANARY") {
			t.Errorf("A10 %s: %+v", body, refused)
		}
	}
}
