package caddyfile

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig"
	"github.com/caddyserver/caddy/v2/caddyconfig/httpcaddyfile"
	"github.com/caddyserver/caddy/v2/modules/caddyhttp"

	"github.com/durward-gateway/durward/modules/app"
	linked "github.com/durward-gateway/durward/modules/pipeline"
	"github.com/durward-gateway/durward/modules/platformapi"
)

// macroName is the directive that stands for the whole pipeline.
const macroName = "durward"

// platformName is the directive that answers all requests that no other directive answers.
const platformName = "durward_platform"

// family is a part of the gateway to which the macro can be narrowed, with the directives that it needs beyond
// durward_session and durward_auth.
type family struct {
	name       string
	directives []string
}

var families = []family{
	{"platform", []string{"durward_console", "durward_credential", platformName}},
	{"mcp", []string{"durward_limit", "durward_policy", "durward_credential", "durward_mcp"}},
	{"sse", []string{"durward_limit", "durward_policy", "durward_credential", "durward_sse"}},
	{"llm", []string{"durward_limit", "durward_llm"}},
	{"gateway", []string{"durward_limit", "durward_gateway"}},
	{"scim", []string{"durward_scim"}},
}

// parseMacro sets up the whole pipeline. Syntax:
//
//	durward [platform] [mcp] [sse] [llm] [gateway] [scim]
//
// Without arguments every family is served. /healthz and /readyz always are.
func parseMacro(h httpcaddyfile.Helper) (caddyhttp.MiddlewareHandler, error) {
	h.Next()
	option, ok := h.Option(optionName).(httpcaddyfile.App)
	if !ok {
		return nil, h.Errf("the %s directive needs the global option `%s { store ...; identity ... }` at the top of the Caddyfile", macroName, optionName)
	}
	wanted, err := chosen(h)
	if err != nil {
		return nil, err
	}
	if !isDevelopment(option.Value) {
		wanted = slices.DeleteFunc(wanted, func(name string) bool { return name == "durward_dev" })
	}
	if h.NextBlock(0) {
		return nil, h.Errf("%s takes no block; settings belong to the global option, or write the pipeline out", macroName)
	}
	whole := new(linked.Handler)
	for _, d := range pipeline {
		if slices.Contains(wanted, d.name) {
			whole.HandlersRaw = append(whole.HandlersRaw, caddyconfig.JSONModuleObject(d.make(), "handler", d.name, nil))
		}
	}
	// Requests for which no family is responsible are answered too, so that no answer of the gateway is ever an empty
	// 200. A site without the platform family must not have its API.
	if !slices.Contains(wanted, platformName) {
		last := &platformapi.Handler{HealthOnly: true}
		whole.HandlersRaw = append(whole.HandlersRaw, caddyconfig.JSONModuleObject(last, "handler", platformName, nil))
	}
	return whole, nil
}

// chosen lists the directives of the families that the arguments name.
func chosen(h httpcaddyfile.Helper) ([]string, error) {
	wanted := []string{"durward_dev", "durward_session", "durward_auth"}
	arguments := h.RemainingArgs()
	for _, argument := range arguments {
		if !slices.ContainsFunc(families, func(f family) bool { return f.name == argument }) {
			return nil, h.Errf("unrecognized family %q; known are %s", argument, familyNames())
		}
	}
	for _, f := range families {
		if len(arguments) == 0 || slices.Contains(arguments, f.name) {
			wanted = append(wanted, f.directives...)
		}
	}
	return wanted, nil
}

func familyNames() string {
	var names []string
	for _, f := range families {
		names = append(names, f.name)
	}
	return strings.Join(names, ", ")
}

// isDevelopment reports whether an adapted option names the development identity provider.
func isDevelopment(option json.RawMessage) bool {
	var config app.App
	if json.Unmarshal(option, &config) != nil {
		return false
	}
	return slices.ContainsFunc(config.IdentitiesRaw, func(raw json.RawMessage) bool {
		var identity struct {
			Kind string `json:"kind"`
		}
		return json.Unmarshal(raw, &identity) == nil && identity.Kind == "dev"
	})
}
