package settings

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// AuditRules holds the settings for records of calls: what they contain, whether calls go on without them, and who gets
// a copy. What changes something through the API, approvals and stored credentials are always recorded, in the
// transaction that changes them.
type AuditRules struct {
	// Kinds of traffic whose calls are refused with 503 when they cannot be recorded: `mcp`, `sse`, `llm`. Default: all that
	// best_effort does not name.
	Required []string `json:"required,omitempty"`
	// Kinds of traffic whose calls go on when they cannot be recorded; what is lost is counted. `/readyz` says so. Default:
	// none.
	BestEffort []string `json:"best_effort,omitempty"`
	// When a record is on the disk: before the credential leaves (`always`), or at most 50 ms after it was written (empty). In
	// both cases it survives the end of the process. Default: empty.
	Sync string `json:"sync,omitempty"`
	// The receivers of a copy of every record, besides the store. Default: nobody.
	Sinks []AuditSink `json:"sinks,omitempty"`
	// Keep the arguments of calls, up to 16 KiB each. Default: false, only their digest (SHA-256 of the bytes).
	Arguments bool `json:"arguments,omitempty"`
	// Names of members whose values are replaced in kept arguments, at any depth. Case, `_`, `-` and blanks make no
	// difference, nor do an `x` in front and an `s` behind. They are added to the default: authorization, password,
	// passwd, secret, client_secret, token, access_token, refresh_token, api_key, private_key, credential, cookie.
	Redact []string `json:"redact,omitempty"`
}

// AuditSink gets a copy of every record. A sink has two seconds for each batch of records, and a queue of 8,192
// records. Records that do not fit are lost to the sink; the loss is counted and logged. Calls never wait for a sink.
type AuditSink struct {
	// The kind of sink: `file` appends NDJSON to a file or pipe, `log` writes to Caddy's logger `durward.audit`. Required.
	Kind string `json:"kind,omitempty"`
	// The path of a file, which is made with mode 0600. Required for a file, and of no meaning for anything else.
	Path string `json:"path,omitempty"`
}

// Kinds of traffic, as AuditRules name them.
const (
	AuditMCP = "mcp"
	AuditSSE = "sse"
	AuditLLM = "llm"
)

var auditTraffic = []string{AuditMCP, AuditSSE, AuditLLM}

// SyncAlways is the value of AuditRules.Sync that makes every record wait for the disk.
const SyncAlways = "always"

// Check refuses rules that contradict each other, and unknown words. r may be nil.
func (r *AuditRules) Check() error {
	if r == nil {
		return nil
	}
	for _, kind := range slices.Concat(r.Required, r.BestEffort) {
		if !slices.Contains(auditTraffic, kind) {
			return fmt.Errorf("audit: unrecognized kind of traffic %q; known are %s", kind, strings.Join(auditTraffic, ", "))
		}
		if slices.Contains(r.Required, kind) && slices.Contains(r.BestEffort, kind) {
			return fmt.Errorf("audit: %s cannot be required and best_effort", kind)
		}
	}
	if r.Sync != "" && r.Sync != SyncAlways {
		return fmt.Errorf("audit: unrecognized sync %q; the only one is %s", r.Sync, SyncAlways)
	}
	for i, s := range r.Sinks {
		switch {
		case s.Kind == "file" && s.Path == "":
			return errors.New("audit: sink file needs a path")
		case s.Kind == "log" && s.Path != "":
			return errors.New("audit: sink log takes no path")
		case s.Kind != "file" && s.Kind != "log":
			return fmt.Errorf("audit: unrecognized sink %q; known are file, log", s.Kind)
		case slices.Contains(r.Sinks[:i], s):
			return fmt.Errorf("audit: sink %s is given twice", strings.TrimSpace(s.Kind+" "+s.Path))
		}
	}
	return nil
}

// WithDefaults returns the rules that are in force. r may be nil.
func (r *AuditRules) WithDefaults() AuditRules {
	if r == nil {
		return AuditRules{}
	}
	return *r
}
