package validate

import (
	"encoding/json"
	"regexp"
	"testing"
)

// TestDescribe checks that a body is described by the readers that read it.
func TestDescribe(t *testing.T) {
	s := Describe(func(o *Object) {
		o.Name(Required, 255)
		o.Text("kind", Text{Flags: Nullable, Enum: []string{"a", "b"}})
		o.Text("word", Text{Pattern: regexp.MustCompile("^[a-z]+$"), Min: 1})
		o.Secret("key", Text{Flags: Nullable, Max: 9})
		o.Int("count", Integer{Min: 1, Max: 5})
		o.UUIDs("ids", List{Max: 3})
		o.Bool("on", 0)
		o.Time("at", Nullable)
		o.Document("meta", 0, 100)
		if o.Has("parts") {
			for _, part := range o.Objects("parts", List{Flags: Required}).Value {
				part.Int("weight", Integer{Flags: Required})
			}
		}
		inner := o.Object("inner", Nullable)
		inner.Value.Texts("roles", List{Flags: Required}, Text{Max: 7})
		o.Only()
	})
	text, err := json.MarshalIndent(s, "", " ")
	if err != nil {
		t.Fatal(err)
	}
	const want = `{
 "type": "object",
 "properties": {
  "at": {
   "type": [
    "string",
    "null"
   ],
   "format": "date-time"
  },
  "count": {
   "type": "integer",
   "minimum": 1,
   "maximum": 5
  },
  "ids": {
   "type": "array",
   "items": {
    "type": "string",
    "format": "uuid"
   },
   "maxItems": 3
  },
  "inner": {
   "type": [
    "object",
    "null"
   ],
   "properties": {
    "roles": {
     "type": "array",
     "items": {
      "type": "string",
      "maxLength": 7
     },
     "maxItems": 1000
    }
   },
   "required": [
    "roles"
   ]
  },
  "key": {
   "type": [
    "string",
    "null"
   ],
   "maxLength": 9,
   "writeOnly": true
  },
  "kind": {
   "anyOf": [
    {
     "type": "string",
     "enum": [
      "a",
      "b"
     ]
    },
    {
     "type": "null"
    }
   ]
  },
  "meta": {
   "type": "object"
  },
  "name": {
   "type": "string",
   "minLength": 1,
   "maxLength": 255
  },
  "on": {
   "type": "boolean"
  },
  "parts": {
   "type": "array",
   "items": {
    "type": "object",
    "properties": {
     "weight": {
      "type": "integer",
      "minimum": 0
     }
    },
    "required": [
     "weight"
    ]
   },
   "maxItems": 1000
  },
  "word": {
   "type": "string",
   "pattern": "^[a-z]+$",
   "minLength": 1,
   "maxLength": 4096
  }
 },
 "required": [
  "name",
  "parts"
 ]
}`
	if string(text) != want {
		t.Errorf("%s", text)
	}
}

// TestDescribedQuery checks that a query is described by its readers.
func TestDescribedQuery(t *testing.T) {
	q := DescribedQuery()
	page, limit := q.Page()
	q.UUID("user_id", Required)
	q.Enums("status", "DRAFT", "ACTIVE")
	q.Bool("test", 0)
	q.NoOthers()
	text, err := json.Marshal(q.Described())
	const want = `[{"Name":"page","Required":false,"Schema":{"type":"integer","minimum":1,"maximum":2147483647}},` +
		`{"Name":"limit","Required":false,"Schema":{"type":"integer","minimum":1,"maximum":100}},` +
		`{"Name":"user_id","Required":true,"Schema":{"type":"string","format":"uuid"}},` +
		`{"Name":"status","Required":false,"Schema":{"type":"array","items":{"type":"string","enum":["DRAFT","ACTIVE"]},"maxItems":100}},` +
		`{"Name":"test","Required":false,"Schema":{"type":"boolean"}}]`
	if err != nil || string(text) != want || page != 1 || limit != 10 || q.Err() != nil {
		t.Errorf("%s, %v, page %d of %d, %v", text, err, page, limit, q.Err())
	}
}
