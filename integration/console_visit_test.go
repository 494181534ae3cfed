package integration

import (
	"encoding/json"
	"io"
	"net/http"
	"net/http/cookiejar"
	"net/url"
	"regexp"
	"strings"
	"testing"
)

// logsIn logs alice in on the way to a page of the console.
func (d *dev) logsIn(t *testing.T, path string) consoleVisit {
	t.Helper()
	return d.logsInAs(t, clientUser, path)
}

func (d *dev) logsInAs(t *testing.T, user, path string) consoleVisit {
	t.Helper()
	v := consoleVisit{d, newClient(t)}
	jar, err := cookiejar.New(nil)
	if err != nil {
		t.Fatal(err)
	}
	v.client.Jar, v.client.CheckRedirect = jar, nil
	page := v.get(t, path)
	form := url.Values{"user": {user}}
	for _, field := range regexp.MustCompile(`<input type="hidden" name="([^"]+)" value="([^"]*)">`).FindAllStringSubmatch(page, -1) {
		form.Set(field[1], field[2])
	}
	action := regexp.MustCompile(`<form[^>]* action="([^"]+)"`).FindStringSubmatch(page)
	if action == nil {
		t.Fatalf("there is no login: %s", page)
	}
	if at, page := v.post(t, action[1], form.Encode()); at != d.url+path || !strings.Contains(page, `<div id="app">`) {
		t.Fatalf("the login ended at %s: %s", at, page)
	}
	return v
}

// send sends a request with headers, and returns the answer.
func (v consoleVisit) send(t *testing.T, method, path string, headers map[string]string) (*http.Response, string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, v.d.url+path, nil)
	if err != nil {
		t.Fatal(err)
	}
	for name, value := range headers {
		if value != "" {
			request.Header.Set(name, value)
		}
	}
	response, err := v.client.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response, string(body)
}

func (v consoleVisit) get(t *testing.T, path string) string {
	t.Helper()
	_, body := v.send(t, http.MethodGet, path, map[string]string{"Accept": "text/html", "Sec-Fetch-Mode": "navigate"})
	return body
}

// post sends a form, and returns where that led.
func (v consoleVisit) post(t *testing.T, path, form string) (at, page string) {
	t.Helper()
	if strings.HasPrefix(path, "/") {
		path = v.d.url + path
	}
	response, err := v.client.Post(path, "application/x-www-form-urlencoded", strings.NewReader(form))
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.Request.URL.String(), string(body)
}

// token asks for a token as the console's page does, with other headers where the test has some.
func (v consoleVisit) token(t *testing.T, change map[string]string) (status int, body string) {
	t.Helper()
	headers := map[string]string{"Sec-Fetch-Site": "same-origin", "Origin": v.d.url}
	for name, value := range change {
		headers[name] = value
	}
	response, body := v.send(t, http.MethodPost, "/console/token", headers)
	return response.StatusCode, body
}

func (v consoleVisit) mustToken(t *testing.T) string {
	t.Helper()
	status, body := v.token(t, nil)
	var answer struct {
		Token string `json:"access_token"`
	}
	if err := json.Unmarshal([]byte(body), &answer); err != nil || status != http.StatusOK {
		t.Fatalf("the console gets no token: %d %s", status, body)
	}
	return answer.Token
}
