package world

import (
	"cmp"
	"encoding/json"
	"strings"
	"testing"
)

const inspector = "@modelcontextprotocol/inspector"

// newcomer is a client that gets only an address.
type newcomer struct {
	name      string // of contact.mjs
	software  string // the npm package
	script    string // another script than contact.mjs
	short     bool   // CI tries it, too
	led       string // the way in which its user got the page: in words, or by the protocol
	modern    bool   // its server speaks 2026-07-28
	account   bool   // and demands tokens of an OAuth provider of others
	begins    int    // how many conversations it begins; 0: one
	shows     bool   // its model may go on being shown tools that are gone
	known     bool   // it has to be given a client that the provider knows
	described bool   // it names its metadata document where the server takes one
	next      bool   // it calls the tool in its next conversation
	remark    string
}

func newcomers() []newcomer {
	const sdk2 = "@modelcontextprotocol/client"
	return []newcomer{
		{name: "sdk 1", software: sdk1, short: true, led: "words"},
		{name: "sdk 1, pages", software: sdk1, led: "-32042"},
		{name: "sdk 2", software: sdk2, led: "words", remark: "2025 era."},
		{name: "sdk 2, pages", software: sdk2, led: "-32042", remark: "2025 era."},
		{name: "sdk 2 modern", software: sdk2, led: "words", modern: true},
		{name: "sdk 2 modern, pages", software: sdk2, led: "input_required", modern: true},
		{name: "sdk 2 modern, OAuth", software: sdk2, led: "words", modern: true, account: true, remark: "Its server is one of SDK 2.x that takes tokens of an oidc-provider."},
		{name: "sdk 2 modern, pages, OAuth", software: sdk2, led: "input_required", modern: true, account: true, remark: "Its server is one of SDK 2.x that takes tokens of an oidc-provider."},
		{name: "mcp-remote", software: "mcp-remote", short: true, led: "words", begins: 2, remark: "Its first conversation is a trial."},
		{name: "@ai-sdk/mcp", software: "@ai-sdk/mcp", led: "words"},
		{name: "@langchain/mcp-adapters", software: "@langchain/mcp-adapters", led: "words", begins: 2, next: true, remark: "It keeps its list of tools for a conversation."},
		{name: "@openai/agents", software: "@openai/agents", led: "words"},
		{name: "@mastra/mcp", software: "@mastra/mcp", led: "words", known: true, remark: "Registers no client: it is given the one of the guide."},
		{name: "mcp-use", software: "mcp-use", led: "words"},
		{name: "inspector --cli", software: inspector, led: "words", begins: 6, next: true, remark: "A conversation for each command."},
		{name: "Claude Code", software: "@anthropic-ai/claude-code", script: "claude.mjs", led: "words", begins: 2, shows: true, described: true, remark: "Its model is the lab's, behind the gateway. `claude mcp list` has a conversation of its own."},
		{name: "Codex", software: "@openai/codex", script: "codex.mjs", led: "words", begins: 2, next: true, described: true, remark: "Its model is the lab's."},
		{name: "inspector mcpdo", software: inspector, led: "url", begins: 2, remark: "Its first conversation is a trial."},
	}
}

// row returns the client's row in the report.
func (c newcomer) row(t *testing.T) *row {
	tried := c.name + ": login from the address alone, registered by itself"
	if c.known {
		tried = c.name + ": login"
	}
	tried += "; led to connect an account (" + c.led + "); the same conversation calls the tool"
	if c.next {
		tried = strings.Replace(tried, "the same", "the next", 1)
	}
	return &row{section: mcpClients, software: c.software, version: version(t, c.software), remark: c.remark, tried: tried}
}

// contacted holds the findings of contact.mjs.
type contacted struct {
	Before, After        []string
	Led, Result, Version string
}

// contact runs the client's script; open is told of each page that the client's user opens.
func (c newcomer) contact(t *testing.T, plan any, open func(address string)) contacted {
	t.Helper()
	var got contacted
	converse(t, plan, func(line string) bool {
		var asks struct{ Open string }
		if json.Unmarshal([]byte(line), &asks) != nil || asks.Open == "" {
			return false
		}
		open(asks.Open)
		return true
	}, &got, cmp.Or(c.script, "contact.mjs"), c.name)
	return got
}
