package directory

import (
	"testing"

	"github.com/durward-gateway/durward/storage"
)

func TestCheckAuthParams(t *testing.T) {
	for _, p := range []storage.AuthParams{
		{}, {In: "header"}, {Name: "X-API-Key"}, {Name: "Authorization", Prefix: "Token"}, {In: "query", Name: "api_key"}, {Name: "Private-Token"},
	} {
		if err := CheckAuthParams(p); err != nil {
			t.Errorf("%+v: %v", p, err)
		}
	}
	for _, p := range []storage.AuthParams{
		{In: "body"}, {In: "cookie"}, {In: "query"}, {Name: "Host"}, {Name: "host"}, {Name: "Cookie"}, {Name: "Set-Cookie"}, {Name: "Content-Length"},
		{Name: "content-type"}, {Name: "Mcp-Session-Id"}, {Name: "MCP-Protocol-Version"}, {Name: "Connection"}, {Name: "Transfer-Encoding"},
		{Name: "TE"}, {Name: "Trailer"}, {Name: "Upgrade"}, {Name: "Proxy-Authorization"}, {Name: "Keep-Alive"}, {Name: "Expect"}, {Name: "X-Forwarded-For"},
		{Name: "X A"}, {Name: "X:A"}, {Name: "X\r\nA"}, {Name: "X-Ä"}, {Prefix: "a\r\nb"}, {Prefix: "a\x00"}, {In: "query", Name: "a\nb"},
	} {
		if err := CheckAuthParams(p); err == nil {
			t.Errorf("%+v is taken", p)
		}
	}
}

func TestPlaceCredential(t *testing.T) {
	for _, test := range []struct {
		provider storage.Provider
		in, want storage.AuthParams
	}{
		{storage.ProviderOAuth2, storage.AuthParams{}, storage.AuthParams{In: InHeader, Name: "Authorization", Prefix: "Bearer"}},
		{storage.ProviderTokenExchange, storage.AuthParams{}, storage.AuthParams{In: InHeader, Name: "Authorization", Prefix: "Bearer"}},
		{storage.ProviderClientCredentials, storage.AuthParams{}, storage.AuthParams{In: InHeader, Name: "Authorization", Prefix: "Bearer"}},
		{storage.ProviderWorkloadIdentity, storage.AuthParams{}, storage.AuthParams{In: InHeader, Name: "Authorization", Prefix: "Bearer"}},
		{storage.ProviderBearerToken, storage.AuthParams{Name: "authorization"}, storage.AuthParams{In: InHeader, Name: "authorization", Prefix: "Bearer"}},
		{storage.ProviderBearerToken, storage.AuthParams{Prefix: "token"}, storage.AuthParams{In: InHeader, Name: "Authorization", Prefix: "token"}},
		{storage.ProviderBearerToken, storage.AuthParams{Name: "Private-Token"}, storage.AuthParams{In: InHeader, Name: "Private-Token"}},
		{storage.ProviderBasicAuth, storage.AuthParams{}, storage.AuthParams{In: InHeader, Name: "Authorization", Prefix: "Basic"}},
		{storage.ProviderAPIKey, storage.AuthParams{}, storage.AuthParams{In: InHeader, Name: "X-API-Key"}},
		{storage.ProviderAPIKey, storage.AuthParams{Name: "Authorization"}, storage.AuthParams{In: InHeader, Name: "Authorization"}},
		{storage.ProviderAPIKey, storage.AuthParams{In: InQuery, Name: "key"}, storage.AuthParams{In: InQuery, Name: "key"}},
		{storage.ProviderNone, storage.AuthParams{}, storage.AuthParams{}},
	} {
		if got := PlaceCredential(test.provider, test.in); got != test.want {
			t.Errorf("%s %+v: %+v, want %+v", test.provider, test.in, got, test.want)
		}
	}
}
