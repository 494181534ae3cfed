package main

import (
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

func TestParseManifest(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		want manifest
	}{
		"empty": {`{}`, manifest{}},
		"everything": {
			`{
				"caddy_version": "v2.11.9",
				"plugins": [{"module_path": "example.com/a", "version": "v1.2.3"}, {"module_path": "example.com/b"}],
				"replacements": [
					{"old": "example.com/b", "new": "../b"},
					{"old": "example.com/c@v1.0.0", "new": "example.com/fork@v1.0.1"},
					{"old": "example.com/d", "new": "/src/d"}
				],
				"build_flags": "-trimpath -ldflags='-s -w'",
				"mod_flags": "-modcacherw",
				"os": "linux",
				"arch": "arm64"
			}`,
			manifest{
				CaddyVersion: "v2.11.9",
				Plugins:      []plugin{{"example.com/a", "v1.2.3"}, {"example.com/b", ""}},
				Replacements: []replacement{
					{"example.com/b", "/etc/b"},
					{"example.com/c@v1.0.0", "example.com/fork@v1.0.1"},
					{"example.com/d", "/src/d"},
				},
				BuildFlags: []string{"-trimpath", "-ldflags=-s -w"},
				ModFlags:   []string{"-modcacherw"},
				OS:         "linux",
				Arch:       "arm64",
			},
		},
		"quotes in quotes": {
			`{"build_flags": "-ldflags=\"-X 'main.title=two words'\" '-gcflags=-d=\"a\"'", "mod_flags": "-modcacherw=\"true\""}`,
			manifest{BuildFlags: []string{"-ldflags=-X 'main.title=two words'", `-gcflags=-d="a"`}, ModFlags: []string{"-modcacherw=true"}},
		},
	} {
		t.Run(name, func(t *testing.T) {
			got, err := parseManifest([]byte(tc.text), "/etc/durward")
			if err != nil {
				t.Fatal(err)
			}
			if diff := cmp.Diff(tc.want, got); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestParseManifestRefuses(t *testing.T) {
	for name, tc := range map[string]struct {
		text string
		says string // a part of the error: the field that is to blame
	}{
		"no object":                {`[]`, "valid object"},
		"trailing data":            {`{} {}`, ""},
		"unknown field":            {`{"timeout_get": 3}`, "timeout_get: Extra inputs are not permitted"},
		"field in another case":    {`{"Caddy_Version": "v2.11.9"}`, "Caddy_Version: Extra"},
		"folded letter":            {`{"pluginſ": []}`, "pluginſ: Extra"},
		"duplicate field":          {`{"os": "linux", "os": "windows"}`, `"os"`},
		"number for a string":      {`{"caddy_version": 2}`, "caddy_version: Input should be a valid string"},
		"null for a string":        {`{"arch": null}`, "arch: Input should be a valid string"},
		"list for flags":           {`{"build_flags": ["-trimpath"]}`, "build_flags: Input should be a valid string"},
		"object for plugins":       {`{"plugins": {}}`, "plugins: Input should be a valid list"},
		"string for a plugin":      {`{"plugins": ["example.com/a"]}`, "plugins[0]: Input should be a valid object"},
		"unknown plugin field":     {`{"plugins": [{"module_path": "example.com/a", "ref": "main"}]}`, "plugins[0].ref: Extra"},
		"plugin without a path":    {`{"plugins": [{"version": "v1.0.0"}]}`, "plugins[0].module_path"},
		"plugin path type":         {`{"plugins": [{"module_path": true}]}`, "plugins[0].module_path: Input should be a valid string"},
		"plugin twice":             {`{"plugins": [{"module_path": "example.com/a"}, {"module_path": "example.com/a"}]}`, "plugins[1].module_path"},
		"flag as a plugin":         {`{"plugins": [{"module_path": "-toolexec=sh"}]}`, "plugins[0].module_path"},
		"quote in a plugin":        {`{"plugins": [{"module_path": "a\"; import \"b"}]}`, "plugins[0].module_path"},
		"flag as a version":        {`{"plugins": [{"module_path": "example.com/a", "version": "-x"}]}`, "plugins[0].version"},
		"no Caddy version":         {`{"caddy_version": "latest"}`, "caddy_version"},
		"replacement without new":  {`{"replacements": [{"old": "example.com/a"}]}`, "replacements[0].new"},
		"replacement without old":  {`{"replacements": [{"new": "./a"}]}`, "replacements[0].old"},
		"replacement, no version":  {`{"replacements": [{"old": "example.com/a", "new": "example.com/b"}]}`, "replacements[0].new"},
		"replacement twice":        {`{"replacements": [{"old": "a", "new": "./a"}, {"old": "a", "new": "./b"}]}`, "replacements[1].old"},
		"open quote":               {`{"build_flags": "-ldflags='-s"}`, "build_flags"},
		"package among the flags":  {`{"build_flags": "-trimpath ./other"}`, "build_flags"},
		"os that is no word":       {`{"os": "linux windows"}`, "os"},
		"arch with an assignment":  {`{"arch": "amd64=1"}`, "arch"},
		"duplicate plugin version": {`{"plugins": [{"module_path": "a", "version": "v1.0.0", "version": "v2.0.0"}]}`, `"version"`},
	} {
		t.Run(name, func(t *testing.T) {
			m, err := parseManifest([]byte(tc.text), t.TempDir())
			if err == nil {
				t.Fatalf("taken as %+v", m)
			}
			if !strings.Contains(err.Error(), tc.says) {
				t.Errorf("says %q, want it to name %q", err, tc.says)
			}
		})
	}
}

func TestLoadManifestNamesTheFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "xcaddy.json")
	if _, err := loadManifest(path); err == nil || !strings.Contains(err.Error(), path) {
		t.Errorf("error %v does not name %s", err, path)
	}
}

func TestWith(t *testing.T) {
	for name, tc := range map[string]struct {
		arg  string
		want manifest
	}{
		"new plugin":     {"example.com/new@v1.0.0", manifest{Plugins: []plugin{{"example.com/a", "v1.0.0"}, {"example.com/new", "v1.0.0"}}, Replacements: []replacement{{"example.com/a", "/src/a"}}}},
		"other version":  {"example.com/a@v2.0.0", manifest{Plugins: []plugin{{"example.com/a", "v2.0.0"}}, Replacements: []replacement{{"example.com/a", "/src/a"}}}},
		"replaced":       {"example.com/a=/src/b", manifest{Plugins: []plugin{{"example.com/a", ""}}, Replacements: []replacement{{"example.com/a", "/src/b"}}}},
		"module as well": {"example.com/b@v1.0.0=example.com/fork@v1.0.1", manifest{Plugins: []plugin{{"example.com/a", "v1.0.0"}, {"example.com/b", "v1.0.0"}}, Replacements: []replacement{{"example.com/a", "/src/a"}, {"example.com/b", "example.com/fork@v1.0.1"}}}},
	} {
		t.Run(name, func(t *testing.T) {
			m := manifest{Plugins: []plugin{{"example.com/a", "v1.0.0"}}, Replacements: []replacement{{"example.com/a", "/src/a"}}}
			p, replacedBy, err := parseWith(tc.arg)
			if err != nil {
				t.Fatal(err)
			}
			m.add(p, replacedBy)
			if diff := cmp.Diff(tc.want, m); diff != "" {
				t.Error(diff)
			}
		})
	}
}

func TestWithRefuses(t *testing.T) {
	for _, arg := range []string{"", "@v1.0.0", "example.com/a@", "example.com/a=", "example.com/a=b", "-x", "a b"} {
		if p, _, err := parseWith(arg); err == nil {
			t.Errorf("%q is taken as %+v", arg, p)
		}
	}
}
