package commands

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"

	"github.com/caddyserver/caddy/v2/caddyconfig/caddyfile"
)

// caddysWay matches one prefix that Caddy puts before an error. Such prefixes tell the author of the configuration
// nothing.
var caddysWay = regexp.MustCompile(`^(?:starting development mode|loading (?:(?:initial|new) )?config|loading \S+ app module|\S+ app module: start|provision [\w.]+|server \w+|setting up (?:route handlers|subroutes)|loading the pipeline|` +
	`route \d+|loading (?:handler )?modules?|position \d+|loading module '[^']*'|adapting config using \w+|parsing caddyfile tokens for '[^']*'|` +
	`sending configuration to instance|caddy responded with error): `)

var (
	// answered matches an error of a running gateway, as `reload` prints it.
	answered = regexp.MustCompile(`^HTTP \d+: (\{"error":.*\})\s*$`)
	// atLine matches the place of an unknown word, at the end of an error of the Caddyfile's reader.
	atLine = regexp.MustCompile(`^(.*), at ([^\s:]+:\d+)$`)
	// beginsWithLine matches a place at the beginning of an error.
	beginsWithLine = regexp.MustCompile(`^[^\s:]+:\d+: `)
)

// problem returns an error of a start without Caddy's prefixes. It begins with the file and line of the Caddyfile
// where these are known.
func problem(err error, config string) string {
	text := err.Error()
	for {
		if step := caddysWay.FindString(text); step != "" {
			text = text[len(step):]
			continue
		}
		told := answered.FindStringSubmatch(text)
		var answer struct {
			Error string `json:"error"`
		}
		if told == nil || json.Unmarshal([]byte(told[1]), &answer) != nil || answer.Error == "" {
			break
		}
		text = answer.Error
	}
	if found := atLine.FindStringSubmatch(text); found != nil {
		text = found[2] + ": " + found[1]
	}
	if beginsWithLine.MatchString(text) {
		return text
	}
	if place := placeOfSite(configFile(config), text); place != "" {
		return place + ": " + text
	}
	if place := placeOf(tokensOf(configFile(config)), text); place != "" {
		return place + ": " + text
	}
	return text
}

// configFile returns the file that a command reads. A folder does not count: where names ignore case, this project's
// `caddyfile` is one.
func configFile(config string) string {
	if config != "" {
		return config
	}
	if about, err := os.Stat("Caddyfile"); err == nil && !about.IsDir() {
		return "Caddyfile"
	}
	return ""
}

// placeOf returns the place of the line that an error is about: one that begins with the words of one of its clauses.
// It returns "" when there is none, or several that fit as well.
func placeOf(tokens []caddyfile.Token, text string) string {
	for _, clause := range strings.Split(text, ": ") {
		words := strings.Fields(clause)
		var most int
		var at []string
		for i, t := range tokens {
			if i > 0 && tokens[i-1].Line == t.Line && tokens[i-1].File == t.File {
				continue
			}
			n := 0
			for n < len(words) && i+n < len(tokens) && tokens[i+n].Line == t.Line && tokens[i+n].Text == words[n] {
				n++
			}
			if n > most {
				most, at = n, nil
			}
			if n > 0 && n == most {
				at = append(at, fmt.Sprintf("%s:%d", t.File, t.Line))
			}
		}
		if at = slices.Compact(at); len(at) == 1 {
			return at[0]
		}
	}
	return ""
}

// isCaddyfile reports whether Caddy takes a file without an adapter for a Caddyfile, or its name can mean nothing
// else.
func isCaddyfile(file string) bool {
	name := strings.ToLower(filepath.Base(file))
	return file == "" || filepath.Ext(name) != ".json" && strings.HasPrefix(name, "caddyfile") || strings.HasSuffix(name, ".caddyfile")
}
