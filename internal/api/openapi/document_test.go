package openapi

import (
	"net/http"
	"reflect"
	"strings"
	"testing"

	"github.com/durward-gateway/durward/internal/api/schema"
	"github.com/durward-gateway/durward/internal/api/validate"
)

type thingView struct {
	ID string `json:"id"`
}

type refusal struct {
	Error string `json:"error"`
}

func newDocument(t *testing.T, operations ...Operation) *Document {
	t.Helper()
	d, err := New(Head{URL: "https://gate.acme.dev", Version: "v1", Refusal: reflect.TypeFor[refusal]()}, operations)
	if err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDocument checks that an operation is described with everything that a client needs.
func TestDocument(t *testing.T) {
	text := func(bound int) *schema.Schema {
		return &schema.Schema{Type: schema.Types{schema.String}, MaxLength: bound}
	}
	list := &schema.Schema{Type: schema.Types{schema.Array}, Items: text(5)}
	things := Tag{Name: "things", Description: "Things."}
	d := newDocument(t,
		Operation{
			ID: "updateThing", Tag: things, Method: http.MethodPut, Path: "/api/things/{id}", Summary: "Changes a thing.", Role: "admin",
			Query: []validate.Parameter{{Name: "z", Required: true, Schema: text(9)}, {Name: "a", Schema: list}},
			Body:  text(7), Status: http.StatusOK, Media: jsonMedia, Answer: reflect.TypeFor[thingView](), ShapeStatus: http.StatusUnprocessableEntity,
		},
		Operation{ID: "exportThings", Tag: things, Method: http.MethodGet, Path: "/api/things", Summary: "Exports.", Public: true, Status: http.StatusOK, Media: "text/csv", ShapeStatus: http.StatusBadRequest},
		Operation{ID: "deleteThing", Tag: things, Method: http.MethodDelete, Path: "/api/things/{id}", Summary: "Deletes.", Role: "admin", Status: http.StatusNoContent},
	)
	text1, err := d.JSON()
	if err != nil {
		t.Fatal(err)
	}
	whole := strings.Join(strings.Fields(string(text1)), " ")
	for _, part := range []string{
		`"servers": [ { "url": "https://gate.acme.dev" } ]`,
		`"operationId": "updateThing", "summary": "Changes a thing.", "description": "Role: admin.", "tags": [ "things" ], "parameters": [ { "name": "id", "in": "path", "required": true, "schema": { "type": "string", "minLength": 1 } }, { "name": "a", "in": "query", "schema": { "type": "array", "items": { "type": "string", "maxLength": 5 } }, "style": "form", "explode": false }, { "name": "z", "in": "query", "required": true, "schema": { "type": "string", "maxLength": 9 } } ], "requestBody": { "required": true, "content": { "application/json": { "schema": { "type": "string", "maxLength": 7 } } } }`,
		`"422": { "$ref": "#/components/responses/ShapeError" }`,
		`"operationId": "exportThings", "summary": "Exports.", "tags": [ "things" ], "security": [], "responses": { "200": { "description": "OK", "content": { "text/csv": { "schema": { "type": "string" } } } }`,
		`"204": { "description": "No Content" }`,
		`"Thing": { "type": "object", "properties": { "id": { "type": "string" } }, "required": [ "id" ] }`,
	} {
		if !strings.Contains(whole, part) {
			t.Errorf("the document lacks %s\n%s", part, whole)
		}
	}
	groups, err := d.Groups()
	if err != nil || len(groups) != 1 || len(groups[0].Operations) != 3 {
		t.Fatalf("%+v, %v", groups, err)
	}
	if o := groups[0].Operations[0]; o.ID != "exportThings" || o.Answer != "text/csv" || o.Description != "Without a token." || o.Status != "200" {
		t.Errorf("%+v", o)
	}
	if schemas, err := d.Schemas(); err != nil || len(schemas) != 2 || schemas[1].Name != "Thing" {
		t.Errorf("%+v, %v", schemas, err)
	}
}

// TestTwoOfOneName checks that no two operations have the same name: clients would have one function for both.
func TestTwoOfOneName(t *testing.T) {
	o := Operation{ID: "getThing", Method: http.MethodGet, Path: "/api/things", Status: http.StatusNoContent}
	if _, err := New(Head{Refusal: reflect.TypeFor[refusal]()}, []Operation{o, o}); err == nil || !strings.Contains(err.Error(), "two operations are named getThing") {
		t.Error(err)
	}
}
