package gatewayapi

import (
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestFreshLoginForKeys checks that a browser which was left open makes no key and gives none a new secret, and that a fresh
// login does.
func TestFreshLoginForKeys(t *testing.T) {
	a := newAPI(t)
	const keys, own = "/admin/api-keys", "/user/api-keys"
	key := func(name string) object { return object{"name": name, "scopes": []string{"llm"}} }
	left, fresh := *a.adam, *a.adam
	left.Console, left.ProvenAt = true, start.Add(-5*time.Minute)
	fresh.Console, fresh.ProvenAt = true, start.Add(-5*time.Minute+time.Second)
	id := a.do(&fresh, http.MethodPost, keys, key("first")).want(200)["id"].(string)
	for _, act := range []struct {
		path string
		body any
	}{{keys, key("second")}, {own, key("third")}, {keys + "/" + id + "/rotate", nil}} {
		if w := a.do(&left, http.MethodPost, act.path, act.body); w.status != 403 || !strings.Contains(w.body, `"login_url":"/login?fresh=1"`) {
			t.Errorf("%s, left open: %d %s", act.path, w.status, w.body)
		}
		if w := a.do(&fresh, http.MethodPost, act.path, act.body); w.status != 200 {
			t.Errorf("%s, after a fresh login: %d %s", act.path, w.status, w.body)
		}
	}
	if w := a.do(&left, http.MethodDelete, keys+"/"+id, nil); w.status != 200 {
		t.Errorf("revoking, left open: %d %s", w.status, w.body)
	}
}
