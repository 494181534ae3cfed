package integration

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"testing"

	"github.com/google/jsonschema-go/jsonschema"
)

// description holds the API's own description, against which the answers of all suites are checked: see checkDescribed.
type description struct {
	mu         sync.Mutex
	operations []*describedOperation
	named      map[string]any // the schemas that others refer to
	resolved   map[string]*jsonschema.Resolved
}

// describedOperation holds an operation and the segments of its path.
type describedOperation struct {
	method    string
	segments  []string
	responses map[string]map[string]any // by status
}

var described description

// references are where the document keeps schemas that others refer to, and where a schema by itself keeps them.
var references = strings.NewReplacer("#/components/schemas/", "#/$defs/")

// load reads the description from a gateway, once for all tests.
func (d *description) load(address string) error {
	if d.operations != nil {
		return nil
	}
	response, err := http.Get(address + "/openapi.json")
	if err != nil {
		return err
	}
	defer response.Body.Close()
	if response.StatusCode != http.StatusOK {
		content, _ := io.ReadAll(response.Body)
		return fmt.Errorf("%s %s", response.Status, content)
	}
	var document struct {
		Paths      map[string]map[string]struct{ Responses map[string]map[string]any }
		Components struct {
			Schemas   map[string]any
			Responses map[string]map[string]any
		}
	}
	if err := json.NewDecoder(response.Body).Decode(&document); err != nil {
		return fmt.Errorf("status %d: %w", response.StatusCode, err)
	}
	d.named, d.resolved = document.Components.Schemas, make(map[string]*jsonschema.Resolved)
	for path, operations := range document.Paths {
		for method, o := range operations {
			for status, r := range o.Responses {
				if name, refers := r["$ref"].(string); refers {
					o.Responses[status] = document.Components.Responses[strings.TrimPrefix(name, "#/components/responses/")]
				}
			}
			d.operations = append(d.operations, &describedOperation{strings.ToUpper(method), strings.Split(path, "/"), o.Responses})
		}
	}
	return nil
}

// of returns the operation of a request, nil when there is none. Literal segments come before parameters.
func (d *description) of(method, path string) *describedOperation {
	segments := strings.Split(path, "/")
	var best *describedOperation
	for _, o := range d.operations {
		if o.method != method || len(o.segments) != len(segments) {
			continue
		}
		fits := true
		for i, s := range o.segments {
			fits = fits && (s == segments[i] || strings.HasPrefix(s, "{"))
		}
		if fits && (best == nil || strings.Count(strings.Join(o.segments, ""), "{") < strings.Count(strings.Join(best.segments, ""), "{")) {
			best = o
		}
	}
	return best
}

// check compares an answer with its description.
func (d *description) check(method, path string, status int, media string, body []byte) error {
	o := d.of(method, path)
	if o == nil {
		if status == http.StatusNotFound || status == http.StatusMethodNotAllowed {
			return nil
		}
		return fmt.Errorf("there is no such operation")
	}
	response, known := o.responses[strconv.Itoa(status)]
	if !known {
		response, known = o.responses[strconv.Itoa(status/100)+"XX"]
	}
	if !known && status >= http.StatusInternalServerError {
		response, known = o.responses["default"]
	}
	if !known {
		return fmt.Errorf("status %d is not described", status)
	}
	contents, _ := response["content"].(map[string]any)
	if len(contents) == 0 || method == http.MethodHead {
		if len(body) > 0 {
			return fmt.Errorf("no body is described")
		}
		return nil
	}
	content, known := contents[media].(map[string]any)
	if !known {
		return fmt.Errorf("a body of type %q is not described", media)
	}
	if media != "application/json" {
		return nil
	}
	var value any
	if err := json.Unmarshal(body, &value); err != nil {
		return err
	}
	schema, err := d.schema(fmt.Sprint(o.method, o.segments, status), content["schema"])
	if err != nil {
		return err
	}
	return schema.Validate(value)
}

// schema makes a schema of the document usable. Members that it does not have are refused.
func (d *description) schema(name string, of any) (*jsonschema.Resolved, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if known := d.resolved[name]; known != nil {
		return known, nil
	}
	whole := map[string]any{"$defs": d.named, "allOf": []any{of}}
	text, err := json.Marshal(closed(whole))
	if err != nil {
		return nil, err
	}
	var s jsonschema.Schema
	if err := json.Unmarshal([]byte(references.Replace(string(text))), &s); err != nil {
		return nil, err
	}
	resolved, err := s.Resolve(nil)
	if err == nil {
		d.resolved[name] = resolved
	}
	return resolved, err
}

// closed adds to each object with named members that it has no others.
func closed(schema any) any {
	switch s := schema.(type) {
	case map[string]any:
		out := make(map[string]any, len(s))
		for name, value := range s {
			out[name] = closed(value)
		}
		if _, object := s["properties"].(map[string]any); object && s["type"] != nil && s["additionalProperties"] == nil {
			out["additionalProperties"] = false
		}
		return out
	case []any:
		out := make([]any, len(s))
		for i, value := range s {
			out[i] = closed(value)
		}
		return out
	}
	return schema
}

// otherAPIs are addresses below /api that belong to no family of the API.
var otherAPIs = []string{"/api/oauth/", "/api/llm-gateway/v1"}

// checkDescribed fails a test when an answer is not as the API describes it.
func checkDescribed(t testing.TB, request *http.Request, response *http.Response, body []byte) {
	t.Helper()
	path := request.URL.EscapedPath()
	if !strings.HasPrefix(path, "/api/") {
		return
	}
	for _, prefix := range otherAPIs {
		if strings.HasPrefix(path+"/", prefix) {
			return
		}
	}
	described.mu.Lock()
	err := described.load(request.URL.Scheme + "://" + request.URL.Host)
	described.mu.Unlock()
	if err != nil {
		t.Logf("reading the API's description: %v", err) // a gateway that stops, or is older
		return
	}
	media, _, _ := strings.Cut(response.Header.Get("Content-Type"), ";")
	if err := described.check(request.Method, path, response.StatusCode, media, bytes.TrimSpace(body)); err != nil {
		t.Errorf("%s %s answers otherwise than /openapi.json says: %v\n%s", request.Method, path, err, tail(string(body), 2_000))
	}
}
