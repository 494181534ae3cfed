package param_test

import (
	"errors"
	"net/http"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/durward-gateway/durward/internal/mcp/jsonrpc"
	mcpparam "github.com/durward-gateway/durward/internal/mcp/param"
)

func definition(schema string) []byte { return []byte(`{"inputSchema":` + schema + `,"name":"t"}`) }

func param(header string, path ...string) mcpparam.Param {
	return mcpparam.Param{Header: header, Path: path}
}

// TestRead checks that annotations are those that the protocol has; where one is wrong, there are none.
func TestRead(t *testing.T) {
	for name, tc := range map[string]struct {
		schema string
		want   []mcpparam.Param
	}{
		"none":   {`{"type":"object","properties":{"a":{"type":"string"}}}`, nil},
		"three":  {`{"properties":{"a":{"type":"string","x-mcp-header":"Region"},"b":{"type":"integer","x-mcp-header":"n_1"},"c":{"type":"boolean","x-mcp-header":"OK"}}}`, []mcpparam.Param{param("Mcp-Param-Region", "a"), param("Mcp-Param-N_1", "b"), param("Mcp-Param-Ok", "c")}},
		"nested": {`{"properties":{"a":{"type":"object","properties":{"b":{"type":"string","x-mcp-header":"X"},"c":{"properties":{"d":{"type":"string","x-mcp-header":"Y"}}}}}}}`, []mcpparam.Param{param("Mcp-Param-X", "a", "b"), param("Mcp-Param-Y", "a", "c", "d")}},

		"a number":           {`{"properties":{"a":{"type":"number","x-mcp-header":"A"}}}`, nil},
		"an object":          {`{"properties":{"a":{"type":"object","x-mcp-header":"A"}}}`, nil},
		"no type":            {`{"properties":{"a":{"x-mcp-header":"A"}}}`, nil},
		"several types":      {`{"properties":{"a":{"type":["string","null"],"x-mcp-header":"A"}}}`, nil},
		"empty":              {`{"properties":{"a":{"type":"string","x-mcp-header":""}}}`, nil},
		"no string":          {`{"properties":{"a":{"type":"string","x-mcp-header":1}}}`, nil},
		"a blank":            {`{"properties":{"a":{"type":"string","x-mcp-header":"A B"}}}`, nil},
		"a line break":       {`{"properties":{"a":{"type":"string","x-mcp-header":"A\r\nB"}}}`, nil},
		"not ASCII":          {`{"properties":{"a":{"type":"string","x-mcp-header":"Région"}}}`, nil},
		"twice":              {`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"string","x-mcp-header":"a"}}}`, nil},
		"a wrong one beside": {`{"properties":{"a":{"type":"string","x-mcp-header":"A"},"b":{"type":"number","x-mcp-header":"B"}}}`, nil},
		"below items":        {`{"properties":{"a":{"type":"array","items":{"type":"string","x-mcp-header":"A"}}}}`, nil},
		"in a choice":        {`{"oneOf":[{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}]}`, nil},
		"of the object":      {`{"type":"string","x-mcp-header":"A"}`, nil},
		"no schema":          {`"x-mcp-header"`, nil},
		"as a property":      {`{"properties":{"x-mcp-header":{"type":"string"}}}`, nil},
	} {
		t.Run(name, func(t *testing.T) {
			if diff := cmp.Diff(tc.want, mcpparam.Read(definition(tc.schema))); diff != "" {
				t.Error(diff)
			}
		})
	}
	if got := mcpparam.Read([]byte(`{"x-mcp-header"`)); got != nil {
		t.Error(got)
	}
}

// TestHeaders sends headers that agree and disagree with the body. Those that agree leave in one spelling, the others are refused.
func TestHeaders(t *testing.T) {
	params := []mcpparam.Param{param("Mcp-Param-Region", "region"), param("Mcp-Param-N", "deep", "n"), param("Mcp-Param-Ok", "ok")}
	type fields = []mcpparam.Field
	for name, tc := range map[string]struct {
		unknown   bool
		arguments string
		sent      http.Header
		want      fields
		refused   bool
	}{
		"all": {arguments: `{"region":"eu","deep":{"n":-7},"ok":true}`, sent: http.Header{"Mcp-Param-Region": {"eu"}, "Mcp-Param-N": {"-7"}, "Mcp-Param-Ok": {"true"}},
			want: fields{{"Mcp-Param-Region", "eu"}, {"Mcp-Param-N", "-7"}, {"Mcp-Param-Ok", "true"}}},
		"none to mirror":          {arguments: `{"other":"x"}`},
		"no arguments":            {},
		"null":                    {arguments: `{"region":null,"deep":null}`},
		"empty":                   {arguments: `{"region":""}`, sent: http.Header{"Mcp-Param-Region": {""}}},
		"encoded":                 {arguments: `{"region":" grüezi\n"}`, sent: http.Header{"Mcp-Param-Region": {"=?base64?IGdyw7xlemkK?="}}, want: fields{{"Mcp-Param-Region", "=?base64?IGdyw7xlemkK?="}}},
		"encoded without need":    {arguments: `{"region":"eu"}`, sent: http.Header{"Mcp-Param-Region": {"=?base64?ZXU=?="}}, want: fields{{"Mcp-Param-Region", "eu"}}},
		"looks encoded":           {arguments: `{"region":"=?base64?literal?="}`, sent: http.Header{"Mcp-Param-Region": {"=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}}, want: fields{{"Mcp-Param-Region", "=?base64?PT9iYXNlNjQ/bGl0ZXJhbD89?="}}},
		"numerically":             {arguments: `{"deep":{"n":42.0}}`, sent: http.Header{"Mcp-Param-N": {"4.2e1"}}, want: fields{{"Mcp-Param-N", "42"}}},
		"what mirrors nothing":    {arguments: `{"region":"eu"}`, sent: http.Header{"Mcp-Param-Region": {"eu"}, "Mcp-Param-City": {"eu"}}, want: fields{{"Mcp-Param-Region", "eu"}}},
		"another value":           {arguments: `{"region":"eu"}`, sent: http.Header{"Mcp-Param-Region": {"us"}}, refused: true},
		"another case":            {arguments: `{"region":"eu"}`, sent: http.Header{"Mcp-Param-Region": {"EU"}}, refused: true},
		"another argument's":      {arguments: `{"region":"eu","other":"us"}`, sent: http.Header{"Mcp-Param-Region": {"us"}}, refused: true},
		"missing":                 {arguments: `{"region":"eu"}`, refused: true},
		"of nothing":              {arguments: `{}`, sent: http.Header{"Mcp-Param-Region": {"eu"}}, refused: true},
		"of null":                 {arguments: `{"region":null}`, sent: http.Header{"Mcp-Param-Region": {"null"}}, refused: true},
		"of an object":            {arguments: `{"region":{}}`, sent: http.Header{"Mcp-Param-Region": {"{}"}}, refused: true},
		"of a fraction":           {arguments: `{"deep":{"n":1.5}}`, sent: http.Header{"Mcp-Param-N": {"1.5"}}, refused: true},
		"of a large number":       {arguments: `{"deep":{"n":9007199254740993}}`, sent: http.Header{"Mcp-Param-N": {"9007199254740992"}}, refused: true},
		"twice":                   {arguments: `{"region":"eu"}`, sent: http.Header{"Mcp-Param-Region": {"eu", "eu"}}, refused: true},
		"encoded wrongly":         {arguments: `{"region":"eu"}`, sent: http.Header{"Mcp-Param-Region": {"=?base64?ZXU?="}}, refused: true},
		"a string for a number":   {arguments: `{"deep":{"n":"7"}}`, sent: http.Header{"Mcp-Param-N": {"7.0"}}, refused: true},
		"a fraction is not there": {arguments: `{"deep":{"n":1.5}}`},

		"unknown":               {unknown: true, arguments: `{"a":[{"b":"eu"}],"n":7.0,"t":false}`, sent: http.Header{"Mcp-Param-X": {"eu"}, "Mcp-Param-Y": {"7"}, "Mcp-Param-Z": {"false"}}, want: fields{{"Mcp-Param-X", "eu"}, {"Mcp-Param-Y", "7"}, {"Mcp-Param-Z", "false"}}},
		"unknown, said nowhere": {unknown: true, arguments: `{"a":"eu"}`, sent: http.Header{"Mcp-Param-X": {"us"}, "Mcp-Param-Y": {"eu"}}, want: fields{{"Mcp-Param-Y", "eu"}}},
		"unknown, other spellings of numbers": {unknown: true, arguments: `{"n":42,"m":16.0}`, sent: http.Header{"Mcp-Param-A": {"0x2Ap0"}, "Mcp-Param-B": {"+42"}, "Mcp-Param-C": {"4.2e1"}, "Mcp-Param-D": {"0x_1p4"}},
			want: fields{{"Mcp-Param-A", "42"}, {"Mcp-Param-B", "42"}, {"Mcp-Param-C", "42"}, {"Mcp-Param-D", "16"}}},
		"unknown, a text":  {unknown: true, arguments: `{"a":"4.2e1"}`, sent: http.Header{"Mcp-Param-A": {"4.2e1"}}, want: fields{{"Mcp-Param-A", "4.2e1"}}},
		"unknown, a name":  {unknown: true, arguments: `{"eu":1}`, sent: http.Header{"Mcp-Param-X": {"eu"}}},
		"unknown, twice":   {unknown: true, arguments: `{"a":"eu"}`, sent: http.Header{"Mcp-Param-X": {"eu", "us"}}, refused: true},
		"unknown, omitted": {unknown: true, arguments: `{"region":"eu"}`},
	} {
		t.Run(name, func(t *testing.T) {
			tool := mcpparam.Tool{Known: !tc.unknown}
			if tool.Known {
				tool.Params = params
			}
			m := &jsonrpc.Message{ID: []byte("1"), Method: "tools/call"}
			if tc.arguments != "" {
				m.Arguments = []byte(tc.arguments)
			}
			got, err := mcpparam.Headers(tool, m, tc.sent)
			var refused *jsonrpc.Error
			if errors.As(err, &refused) != tc.refused || tc.refused && refused.Code != jsonrpc.CodeHeaderMismatch || !tc.refused && err != nil {
				t.Fatalf("%v", err)
			}
			if len(got)+len(tc.want) == 0 {
				return
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

// FuzzHeaders checks that the headers for the server are valid, and say what the client sent.
func FuzzHeaders(f *testing.F) {
	f.Add(`{"properties":{"a":{"type":"string","x-mcp-header":"A"}}}`, `{"a":"eu"}`, "eu")
	f.Add(`{"properties":{"a":{"type":"integer","x-mcp-header":"A"}}}`, `{"a":1e3}`, "1000")
	f.Fuzz(func(t *testing.T, schema, arguments, value string) {
		for _, tool := range []mcpparam.Tool{{}, {Known: true, Params: mcpparam.Read(definition(schema))}} {
			m := &jsonrpc.Message{Method: "tools/call", Arguments: []byte(arguments)}
			out, err := mcpparam.Headers(tool, m, http.Header{"Mcp-Param-A": {value}})
			if err != nil {
				continue
			}
			for _, field := range out {
				for _, c := range []byte(field.Value) {
					if c < 0x20 || c > 0x7e {
						t.Errorf("%q leaves", field.Value)
					}
				}
			}
		}
	})
}
